"""What the stream does not tell: rewritten tables, partitions that come and go, columns that change without a row."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from icestream.model.table import TableState
from icestream.sources.postgres.connection import connect
from icestream.state.tables import TableRow
from support.capturing import CaptureBench
from support.waiting import wait_for

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, v text, n int NOT NULL DEFAULT 0)"
ORDERS = "CREATE TABLE orders (id int PRIMARY KEY)"
DAYS = """
CREATE TABLE days (id int, day int, v text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM (0) TO (10);
CREATE TABLE days_2 PARTITION OF days FOR VALUES FROM (10) TO (20) PARTITION BY HASH (id);
CREATE TABLE days_2_a PARTITION OF days_2 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE days_2_b PARTITION OF days_2 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO days SELECT id, day, 'v' FROM generate_series(1, 5) AS id, unnest(ARRAY[1, 12]) AS day
"""


def live_pipeline(bench: CaptureBench, *statements: str) -> None:
    """Its tables are copied, and capture is stopped."""
    bench.execute(*statements)
    with bench.running() as running:
        wait_for(bench.tables.all, what="the tables")
        bench.go_live()
        bench.catch_up(running)


def table(bench: CaptureBench, name: str) -> TableRow:
    row = bench.tables.get(f"public.{name}")
    assert row is not None
    return row


def look(bench: CaptureBench) -> None:
    with connect(bench.conninfo) as conn:
        bench.untold().settle(conn)


@pytest.fixture
def items(bench: CaptureBench) -> Iterator[CaptureBench]:
    live_pipeline(bench, ITEMS, ORDERS, "INSERT INTO items VALUES (1, '1'), (2, '2')")
    yield bench


@pytest.fixture
def days(bench: CaptureBench) -> Iterator[CaptureBench]:
    live_pipeline(bench, DAYS)
    yield bench


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE items ALTER v TYPE int USING v::int",
        "ALTER TABLE items ALTER n TYPE int USING n + 1",
        "ALTER TABLE items ADD r float8 DEFAULT random()",
        "ALTER TABLE items ADD s bigserial",
        "ALTER TABLE items ALTER n TYPE int USING n + 1; VACUUM FULL items; ANALYZE items",
    ],
)
def test_a_rewritten_table_is_copied_anew_at_a_snapshot_after_it(items: CaptureBench, statement: str) -> None:
    items.execute(*statement.split("; "))
    rewritten = items.wal_end()
    with items.running():
        wait_for(lambda: table(items, "items").state is TableState.COPYING, what="another copy")
        offered = table(items, "items")
        assert offered.reason == "public.items was rewritten"
        assert offered.snapshot_lsn and offered.snapshot_lsn >= rewritten
        assert table(items, "orders").state is TableState.LIVE
        items.go_live()
    with items.running() as running:
        items.catch_up(running)
        look(items)
        assert table(items, "items").state is TableState.LIVE


@pytest.mark.parametrize(
    "statements",
    [
        "VACUUM FULL items",
        "CLUSTER items USING items_pkey",
        "TRUNCATE items",
        "TRUNCATE items; INSERT INTO items VALUES (7, 'a'); ANALYZE items",
        "ALTER TABLE items ALTER n SET DEFAULT 5",
        "ALTER TABLE items ALTER v SET NOT NULL",
        "ALTER TABLE items DROP n; VACUUM FULL items",
        "ALTER TABLE items ADD c text DEFAULT 'c'; LOOK; VACUUM FULL items",
        "ALTER TABLE items ADD g int GENERATED ALWAYS AS (id + 1) STORED",
        "ALTER TABLE items RENAME v TO w",
        "ALTER TABLE items SET (fillfactor = 50)",
        "VACUUM FREEZE items; VACUUM FREEZE pg_attribute; VACUUM FULL pg_attribute; VACUUM FULL items",
    ],
)
def test_what_leaves_the_values_alone_copies_nothing(items: CaptureBench, statements: str) -> None:
    for statement in statements.split("; "):
        if statement == "LOOK":
            look(items)
        else:
            items.execute(statement)
    look(items)
    assert table(items, "items").state is TableState.LIVE


def test_a_rewrite_is_noticed_while_it_runs(items: CaptureBench) -> None:
    with items.running():
        wait_for(items.walsender, what="the stream")
        items.execute("ALTER TABLE items ALTER n TYPE int USING n + 1")
        wait_for(lambda: table(items, "items").state is TableState.COPYING, what="another copy")
        items.go_live()


def test_a_rewrite_during_the_copy_begins_another_one(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    with bench.running():
        wait_for(lambda: bench.tables.all() and table(bench, "items").state is TableState.COPYING, what="an offer")
        first = table(bench, "items").snapshot_lsn
        assert first is not None
        bench.execute("ALTER TABLE items ALTER n TYPE int USING n + 1")
        wait_for(lambda: table(bench, "items").snapshot_lsn != first, what="another offer")
        assert not bench.tables.complete_copy("public.items", position=first, rows=0)
        bench.go_live()


def test_a_snapshot_from_before_the_look_is_not_offered_to_a_table_that_waits(items: CaptureBench) -> None:
    items.tables.request_copy("public.items")
    items.execute("ALTER TABLE items ALTER n TYPE int USING n + 1")
    position = items.wal_end()
    look(items)
    assert items.tables.offer_copy(["public.items"], snapshot_name="older", position=position) == []


def test_a_rewritten_table_without_a_copy_is_parked(bench: CaptureBench) -> None:
    bench.settings = bench.settings.model_copy(
        update={"tables": tuple(entry.model_copy(update={"skip_snapshot": True}) for entry in bench.settings.tables)}
    )
    live_pipeline(bench, ITEMS)
    bench.execute("ALTER TABLE items ALTER n TYPE int USING n + 1")
    look(bench)
    row = table(bench, "items")
    assert row.state is TableState.PARKED and "not to be copied" in (row.reason or "")


def test_a_parked_table_that_is_rewritten_cannot_be_resumed(items: CaptureBench) -> None:
    items.tables.park("public.items", "no right", is_resumable=True)
    items.execute("ALTER TABLE items ALTER n TYPE int USING n + 1")
    look(items)
    row = table(items, "items")
    assert row.state is TableState.PARKED and row.resumable_since is None
    assert row.reason == "no right; public.items was rewritten"


def test_an_enum_value_that_is_renamed_copies_its_tables(bench: CaptureBench) -> None:
    mood = "CREATE TYPE mood AS ENUM ('sad', 'fine')"
    live_pipeline(bench, mood, "CREATE TABLE items (id int PRIMARY KEY, m mood[])", ORDERS)
    bench.execute("ALTER TYPE mood ADD VALUE 'glad'")
    look(bench)
    assert table(bench, "items").state is TableState.LIVE
    bench.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'low'")
    look(bench)
    assert table(bench, "items").state is TableState.PENDING
    assert table(bench, "orders").state is TableState.LIVE


DEEP = (
    "CREATE TYPE mood AS ENUM ('sad', 'fine')",
    "CREATE DOMAIN inner_mood AS mood; CREATE DOMAIN outer_mood AS inner_mood",
    "CREATE TYPE pair AS (a int, m mood); CREATE TYPE moods AS RANGE (subtype = mood)",
)


@pytest.mark.parametrize("type_", ["outer_mood", "inner_mood[]", "pair", "pair[]", "moods"])
def test_an_enum_value_is_followed_into_any_type(bench: CaptureBench, type_: str) -> None:
    live_pipeline(bench, *DEEP, f"CREATE TABLE items (id int PRIMARY KEY, m {type_})", ORDERS)
    bench.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'low'")
    look(bench)
    assert table(bench, "items").state is TableState.PENDING
    assert table(bench, "orders").state is TableState.LIVE


@pytest.mark.parametrize("change", ["ADD ATTRIBUTE b int", "DROP ATTRIBUTE m"])
def test_a_composite_type_that_holds_something_else_copies_its_tables(bench: CaptureBench, change: str) -> None:
    live_pipeline(bench, *DEEP, "CREATE TABLE items (id int PRIMARY KEY, p pair)", ORDERS)
    bench.execute(f"ALTER TYPE pair {change} CASCADE")
    look(bench)
    assert table(bench, "items").state is TableState.PENDING
    assert table(bench, "orders").state is TableState.LIVE


@pytest.mark.parametrize(("before", "after"), [("int", "oid"), ("cidr", "inet")])
def test_a_type_that_writes_the_same_bytes_otherwise_copies_the_table(
    bench: CaptureBench, before: str, after: str
) -> None:
    live_pipeline(bench, f"CREATE TABLE items (id int PRIMARY KEY, v {before})", ORDERS)
    bench.execute(f"ALTER TABLE items ALTER v TYPE {after}")
    look(bench)
    assert table(bench, "items").state is TableState.PENDING
    assert table(bench, "orders").state is TableState.LIVE


ATTACHED = "CREATE TABLE days_3 (LIKE days); INSERT INTO days_3 VALUES (1, 21, 'x');"


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (f"{ATTACHED} ALTER TABLE days ATTACH PARTITION days_3 FOR VALUES FROM (20) TO (30)", "was attached"),
        (
            f"BEGIN; {ATTACHED} ALTER TABLE days ATTACH PARTITION days_3 FOR VALUES FROM (20) TO (30); COMMIT",
            "was attached",
        ),
        ("ALTER TABLE days DETACH PARTITION days_1", "no longer there"),
        ("ALTER TABLE days DETACH PARTITION days_1 CONCURRENTLY", "no longer there"),
        ("DROP TABLE days_1", "no longer there"),
        ("DROP TABLE days_2", "no longer there"),
        ("DROP TABLE days_2_b", "no longer there"),
        (
            "ALTER TABLE days DETACH PARTITION days_1;"
            " ALTER TABLE days ATTACH PARTITION days_1 FOR VALUES FROM (0) TO (10)",
            "was away for a while",
        ),
        (
            "ALTER TABLE days DETACH PARTITION days_2;"
            " ALTER TABLE days ATTACH PARTITION days_2 FOR VALUES FROM (10) TO (20)",
            "was away for a while",
        ),
        ("TRUNCATE days_1", "was truncated"),
        ("TRUNCATE days_2; INSERT INTO days VALUES (1, 12, 'new'); ANALYZE days", "was truncated"),
        ("ALTER TABLE days ALTER v TYPE text USING v || 'x'", "was rewritten"),
        (
            "CREATE TABLE more (LIKE days) PARTITION BY RANGE (day);"
            " CREATE TABLE more_1 PARTITION OF more FOR VALUES FROM (20) TO (25);"
            " INSERT INTO more VALUES (1, 21, 'x');"
            " ALTER TABLE days ATTACH PARTITION more FOR VALUES FROM (20) TO (30)",
            "was attached",
        ),
    ],
)
def test_partitions_that_take_or_bring_rows_copy_the_table(days: CaptureBench, statements: str, reason: str) -> None:
    for statement in statements.split(";"):
        days.execute(statement)
    look(days)
    row = table(days, "days")
    assert row.state is TableState.PENDING and reason in (row.reason or "")


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TABLE days_3 PARTITION OF days FOR VALUES FROM (20) TO (30)",
        "CREATE TABLE days_3 PARTITION OF days FOR VALUES FROM (20) TO (30); INSERT INTO days VALUES (1, 21, 'x')",
        "CREATE TABLE days_3 PARTITION OF days FOR VALUES FROM (20) TO (30) PARTITION BY HASH (id);"
        " CREATE TABLE days_3_a PARTITION OF days_3 FOR VALUES WITH (MODULUS 1, REMAINDER 0);"
        " INSERT INTO days VALUES (1, 21, 'x')",
        "CREATE TABLE days_3 (LIKE days); ALTER TABLE days ATTACH PARTITION days_3 FOR VALUES FROM (20) TO (30)",
        "VACUUM FULL days_1",
        "CLUSTER days_1 USING days_1_pkey; ANALYZE days_1",
        "ALTER TABLE days_1 RENAME TO days_0",
        "ALTER TABLE days ADD c int DEFAULT 7",
    ],
)
def test_partitions_that_bring_no_rows_copy_nothing(days: CaptureBench, statements: str) -> None:
    for statement in statements.split(";"):
        days.execute(statement)
    look(days)
    assert table(days, "days").state is TableState.LIVE


def test_columns_are_noted_when_no_row_tells_of_them(items: CaptureBench) -> None:
    before = items.sightings.all()["public.items"]
    items.execute("ALTER TABLE items ADD c text DEFAULT 'c', DROP n")
    altered = items.wal_end()
    look(items)
    seen = items.sightings.all()["public.items"]
    assert seen.relation and [column.name for column in seen.relation.columns] == ["id", "v", "c"]
    assert seen.shape_position >= altered > before.shape_position
    look(items)
    assert items.sightings.all()["public.items"] == seen


def test_a_table_that_has_lost_its_key_stays_as_it_was_seen(items: CaptureBench) -> None:
    before = items.sightings.all()["public.items"].relation
    items.execute("ALTER TABLE items DROP CONSTRAINT items_pkey", "ALTER TABLE items ADD c int")
    look(items)
    assert items.sightings.all()["public.items"].relation == before


def test_of_two_looks_the_later_one_is_believed(items: CaptureBench) -> None:
    seen = items.sightings.all()["public.items"]
    assert items.sightings.note(seen)
    assert not items.sightings.note(seen)
    assert items.sightings.demand_copy(seen, items.wal_end(), "was rewritten") is None
    assert table(items, "items").state is TableState.LIVE


def test_a_table_that_somebody_holds_locked_does_not_hold_up_the_others(items: CaptureBench) -> None:
    with items.running(), psycopg.connect(items.conninfo) as other:
        wait_for(items.walsender, what="the stream")
        other.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        items.execute("ALTER TABLE items ALTER n TYPE int USING n + 1")
        wait_for(lambda: table(items, "items").reason is not None, what="the rewrite to be noticed")
        other.rollback()
        items.go_live()


def test_a_partition_that_somebody_holds_locked_does_not_hold_up_the_others(bench: CaptureBench) -> None:
    live_pipeline(bench, *DAYS.split(";"), "CREATE TABLE zoo (id int PRIMARY KEY, n int)")
    bench.execute("ALTER TABLE zoo ALTER n TYPE int USING n + 1", "TRUNCATE days_1")
    with psycopg.connect(bench.conninfo) as other, connect(bench.conninfo) as conn:
        conn.execute("SET lock_timeout = '100ms'")
        other.execute("LOCK TABLE ONLY days_1 IN ACCESS EXCLUSIVE MODE")
        bench.untold().settle(conn)
        assert [table(bench, name).state for name in ("days", "zoo")] == [TableState.LIVE, TableState.PENDING]
        other.rollback()
        bench.untold().settle(conn)
    assert table(bench, "days").state is TableState.PENDING
