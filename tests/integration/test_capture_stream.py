"""From the slot into the log: every committed change once, in commit order."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from icestream.capture.membership import Membership
from icestream.capture.options import FlushLimits
from icestream.sources.postgres.catalog import list_tables, read_tables
from icestream.sources.postgres.connection import connect
from icestream.state.log_entries import LogEntries
from support.capturing import PUBLICATION, CaptureBench, replay
from support.waiting import wait_for

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, name text, note text)"


def table_of(bench: CaptureBench, query: str = "SELECT id::text, name, note FROM items") -> dict[tuple[str], object]:
    return {(row[0],): dict(zip(("id", "name", "note"), row, strict=True)) for row in bench.rows(query)}


def test_changes_of_several_transactions_are_in_the_log_in_commit_order(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    with bench.running() as running:
        bench.catch_up(running)
        bench.execute(
            "INSERT INTO items SELECT g, 'n' || g, NULL FROM generate_series(1, 10) g",
            "UPDATE items SET note = 'changed' WHERE id <= 3",
            "DELETE FROM items WHERE id = 10",
            "BEGIN; INSERT INTO items VALUES (11, 'a', 'b'); ROLLBACK",
        )
        bench.catch_up(running)
    changes = bench.changes("public.items")
    assert [change.op for change in changes] == ["I"] * 10 + ["U"] * 3 + ["D"]
    assert [change.lsn for change in changes] == sorted(change.lsn for change in changes)
    assert changes[0].data == {"id": "1", "name": "n1", "note": None}
    assert changes[-1].old == {"id": "10", "name": None, "note": None}
    assert replay(changes, ("id",)) == table_of(bench)


def test_everything_read_is_flushed_and_acknowledged_when_it_stops(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    slow = replace(bench.options, flush=FlushLimits(interval_s=3600, rows=10**9, size=2**40), standby_interval_s=3600)
    with bench.running(options=slow) as running:
        bench.catch_up(running)
        bench.execute("INSERT INTO items VALUES (1, 'flushed at once', NULL)")
        wait_for(lambda: bench.changes("public.items"), what="the first change")
        bench.execute("INSERT INTO items VALUES (2, 'waits for the interval', NULL)")
        written = bench.wal_end()
        wait_for(lambda: bench.sent() >= written, what="the change to be sent")
    assert [change.data["id"] for change in bench.changes("public.items") if change.data] == ["1", "2"]
    assert bench.confirmed() == bench.flushed()


def test_odd_values_keys_and_truncates_arrive_as_postgres_tells_them(bench: CaptureBench) -> None:
    bench.execute(
        ITEMS,
        "ALTER TABLE items ALTER note SET STORAGE EXTERNAL",
        'CREATE TABLE "Odd ""Table.x" (id int PRIMARY KEY, "a.b" text)',
        "CREATE TABLE whole (id int PRIMARY KEY, v text)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
    )
    with bench.running() as running:
        bench.catch_up(running)
        bench.go_live()
        bench.execute(
            "INSERT INTO items VALUES (1, '', repeat('x', 9000)), (2, 'ünï 🎈', NULL)",
            "UPDATE items SET name = 'n' WHERE id = 1",
            "UPDATE items SET id = 3 WHERE id = 2",
            'INSERT INTO "Odd ""Table.x" VALUES (1, \'v\')',
            "INSERT INTO whole VALUES (1, 'a'); UPDATE whole SET v = 'b'; DELETE FROM whole",
            "TRUNCATE items, whole",
            "INSERT INTO items VALUES (1, 'after', NULL)",
        )
        bench.catch_up(running)
    items = bench.changes("public.items")
    assert [change.op for change in items] == ["I", "I", "U", "U", "T", "I"]
    assert items[2].unchanged == ["note"]
    assert items[3].old == {"id": "2", "name": None, "note": None}
    assert items[1].data == {"id": "2", "name": "ünï 🎈", "note": None}
    assert replay(items, ("id",)) == table_of(bench)
    assert [change.data for change in bench.changes('public.Odd "Table.x')] == [{"id": "1", "a.b": "v"}]
    whole = bench.changes("public.whole")
    assert [(change.op, change.old) for change in whole] == [
        ("I", None),
        ("U", {"id": "1", "v": "a"}),
        ("D", {"id": "1", "v": "b"}),
        ("T", None),
    ]


def test_a_relation_that_changes_inside_a_transaction_splits_its_rows(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    with bench.running() as running:
        bench.catch_up(running)
        bench.go_live()
        bench.execute(
            "BEGIN; INSERT INTO items VALUES (1, 'a', 'b'); ALTER TABLE items ADD extra int DEFAULT 7;"
            "INSERT INTO items VALUES (2, 'a', 'b', 8); ALTER TABLE items DROP extra;"
            "INSERT INTO items VALUES (3, 'a', 'b'); COMMIT"
        )
        bench.catch_up(running)
    changes = bench.changes("public.items")
    assert [list(change.data or ()) for change in changes] == [
        ["id", "name", "note"],
        ["id", "name", "note", "extra"],
        ["id", "name", "note"],
    ]
    entries = LogEntries(bench.db, bench.slot).after("public.items", 0, max_rows=1, max_bytes=1)
    assert len({entry.claim_id for entry in entries}) == 1, "one transaction is one claim"


def test_partitions_come_under_the_name_of_their_root(bench: CaptureBench) -> None:
    bench.execute(
        "CREATE TABLE parts (id int, day int, v text, PRIMARY KEY (id, day)) PARTITION BY LIST (day)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1)",
        "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2)",
    )
    with bench.running() as running:
        bench.catch_up(running)
        bench.go_live()
        bench.execute("INSERT INTO parts VALUES (1, 1, 'a'), (2, 2, 'b')", "UPDATE parts SET day = 2 WHERE id = 1")
        bench.execute(
            "CREATE TABLE parts_3 PARTITION OF parts FOR VALUES IN (3)", "INSERT INTO parts VALUES (3, 3, 'c')"
        )
        bench.catch_up(running)
    assert [row.key for row in bench.tables.all()] == ["public.parts"]
    assert set(replay(bench.changes("public.parts"), ("id", "day"))) == {("1", "2"), ("2", "2"), ("3", "3")}


def test_tables_that_are_not_ours_are_not_staged_but_let_the_position_move(bench: CaptureBench) -> None:
    bench.execute(ITEMS, "CREATE SCHEMA other", "CREATE TABLE other.noise (id int PRIMARY KEY)")
    bench.execute(f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES WITH (publish_via_partition_root = true)")
    with bench.running() as running:
        bench.catch_up(running)
        bench.execute("BEGIN; INSERT INTO other.noise VALUES (1); INSERT INTO items VALUES (1, 'a', 'b'); COMMIT")
        bench.execute("INSERT INTO other.noise SELECT generate_series(2, 100)")
        bench.catch_up(running)
    assert len(bench.changes("public.items")) == 1
    assert bench.db.fetch("SELECT DISTINCT table_name FROM {schema}.log_index") == [{"table_name": "public.items"}]


def test_an_idle_table_on_a_busy_server_pins_no_wal(bench: CaptureBench) -> None:
    bench.execute(ITEMS, "CREATE SCHEMA other", "CREATE TABLE other.noise (id int)")
    with bench.running() as running:
        bench.catch_up(running)
        bench.execute("INSERT INTO other.noise SELECT generate_series(1, 1000)")
        written = bench.wal_end()
        wait_for(lambda: bench.confirmed() >= written, what="the slot to move over changes that are not ours")
        running.check()
    assert bench.changes("public.items") == []


def test_text_does_not_depend_on_the_defaults_of_database_and_role(bench: CaptureBench) -> None:
    name = bench.source.info.dbname
    for setting in ("datestyle = 'German'", "intervalstyle = 'iso_8601'", "timezone = 'Asia/Tokyo'"):
        bench.execute(f'ALTER DATABASE "{name}" SET {setting}')
    bench.execute(f"ALTER DATABASE \"{name}\" SET bytea_output = 'escape'")
    bench.execute(f'ALTER DATABASE "{name}" SET extra_float_digits = 0')
    bench.execute("CREATE TABLE v (id int PRIMARY KEY, d date, t timestamptz, i interval, b bytea, f float8)")
    with bench.running() as running:
        bench.catch_up(running)
        bench.execute(
            "INSERT INTO v VALUES (1, '2024-02-03', '2024-02-03 04:05:06.789+00', '1 day 2 hours', '\\x00ff',"
            " 0.1::float8 + 0.2)"
        )
        bench.catch_up(running)
    assert [change.data for change in bench.changes("public.v")] == [
        {
            "id": "1",
            "d": "2024-02-03",
            "t": "2024-02-03 04:05:06.789+00",
            "i": "P1DT2H",
            "b": "\\x00ff",
            "f": "0.30000000000000004",
        }
    ]


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL", "USING INDEX other"])
def test_the_catalog_knows_the_relation_that_the_stream_will_tell(bench: CaptureBench, identity: str) -> None:
    bench.execute(
        "CREATE TABLE t (a int, gone int, b varchar(5) NOT NULL, c numeric(8, 2),"
        " g int GENERATED ALWAYS AS (a + 1) STORED, PRIMARY KEY (c, a))",
        "ALTER TABLE t DROP gone",
        "CREATE UNIQUE INDEX other ON t (b)",
        f"ALTER TABLE t REPLICA IDENTITY {identity}",
    )
    with bench.running() as running:
        bench.catch_up(running)
        bench.execute("INSERT INTO t (a, b, c) VALUES (1, 'x', 2.5)")
        bench.catch_up(running)
    with connect(bench.conninfo) as conn:
        oids = [table.oid for table in list_tables(conn) if table.name.name == "t"]
        (table,) = read_tables(conn, oids)
    assert table.relation() == LogEntries(bench.db, bench.slot).latest_relations()["public.t"]
    assert table.primary_key == ("c", "a")


def test_a_resent_transaction_is_dropped(bench: CaptureBench) -> None:
    """The position of the log is set back by nobody; the server is asked to send again what is in the log."""
    bench.execute(ITEMS)
    with bench.running() as running:
        bench.catch_up(running)
    begin = bench.confirmed()
    bench.execute("INSERT INTO items VALUES (1, 'a', 'b')")
    with psycopg.connect(bench.conninfo, autocommit=True) as other:
        other.execute("SELECT pg_copy_logical_replication_slot(%s, %s)", [bench.slot, bench.slot + "_copy"])
    with bench.running() as running:
        bench.catch_up(running)
    assert bench.confirmed() > begin
    # The copy of the slot stands before the insert: under the slot's name it resends what is in the log.
    bench.drop_slot()
    bench.execute(f"SELECT pg_copy_logical_replication_slot('{bench.slot}_copy', '{bench.slot}')")
    with bench.running() as running:
        bench.execute("INSERT INTO items VALUES (2, 'a', 'b')")
        bench.catch_up(running)
    assert [change.data["id"] for change in bench.changes("public.items") if change.data] == ["1", "2"]


def test_the_stream_goes_on_while_the_tables_are_looked_after(
    bench: CaptureBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a connection of its own, so that no look can hang on the one that streams."""
    looks = []
    is_settled = Membership.is_settled
    monkeypatch.setattr(Membership, "is_settled", lambda *args: looks.append(1) or is_settled(*args))
    bench.execute(ITEMS)
    with bench.running(options=replace(bench.options, watch_interval_s=0.01)) as running:
        bench.catch_up(running)
        for number in range(5):
            seen = len(looks)
            wait_for(lambda seen=seen: len(looks) > seen + 1, what="another look")
            bench.execute(f"INSERT INTO items VALUES ({number}, 'n', NULL)")
            bench.catch_up(running)
    assert [change.op for change in bench.changes("public.items")] == ["I"] * 5
