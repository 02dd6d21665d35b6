"""How a pipeline begins, goes on, and refuses to go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from icestream.capture.session import Session
from icestream.errors import Retry, SlotInUse, SlotLost, SourceError, WrongCluster
from icestream.model.position import Lsn
from icestream.model.table import TableState
from icestream.sources.postgres.connection import connect
from icestream.sources.postgres.publication import drop_publication, find_publication
from icestream.sources.postgres.slot import COPY_ANEW
from icestream.state.identity import Identity
from support.capturing import PUBLICATION, CaptureBench, replay
from support.waiting import wait_for

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, v text)"
ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, v text)"


def offered(bench: CaptureBench, table: str = "public.items") -> tuple[str, Lsn]:
    """The snapshot at which the table is to be copied, once it is offered."""

    def find() -> tuple[str, Lsn] | None:
        row = bench.tables.get(table)
        if row and row.state is TableState.COPYING and row.snapshot_name and row.snapshot_lsn:
            return row.snapshot_name, row.snapshot_lsn
        return None

    return wait_for(find, what=f"a snapshot for {table}")


def copied(bench: CaptureBench, snapshot: str, table: str = "items") -> set[int]:
    """The keys that a worker would copy at the snapshot."""
    with psycopg.connect(bench.conninfo) as conn:
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        conn.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
        return {row[0] for row in conn.execute(sql.SQL("SELECT id FROM {}").format(sql.Identifier(table)))}


def streamed(bench: CaptureBench, after: Lsn, table: str = "public.items") -> set[int]:
    return {int(key[0]) for key in replay(bench.changes(table), ("id",), after)}


def finish_copies(bench: CaptureBench) -> None:
    for row in bench.tables.all():
        if row.state is TableState.COPYING and row.snapshot_lsn:
            bench.tables.complete_copy(row.key, position=row.snapshot_lsn, rows=0)


class Writer:
    """Inserts one key after the other, one transaction each, until it is stopped."""

    def __init__(self, conninfo: str, table: str = "items") -> None:
        self.count = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(conninfo, table), daemon=True)
        self._thread.start()

    def _run(self, conninfo: str, table: str) -> None:
        with psycopg.connect(conninfo, autocommit=True) as conn:
            while not self._stop.is_set():
                conn.execute(sql.SQL("INSERT INTO {} VALUES (%s)").format(sql.Identifier(table)), [self.count])
                self.count += 1

    def stop(self) -> int:
        self._stop.set()
        self._thread.join(30)
        return self.count


@pytest.fixture
def writer(bench: CaptureBench) -> Iterator[Writer]:
    bench.execute(ITEMS)
    writer = Writer(bench.conninfo)
    yield writer
    writer.stop()


def test_copy_and_stream_together_hold_every_row_once(bench: CaptureBench, writer: Writer) -> None:
    wait_for(lambda: writer.count > 50, what="rows before the slot")
    with bench.running() as running:
        snapshot, position = offered(bench)
        seen = copied(bench, snapshot)
        wait_for(lambda: writer.count > len(seen) + 50, what="rows after the slot")
        total = writer.stop()
        bench.catch_up(running)
    later = streamed(bench, position)
    assert seen and later
    assert not seen & later
    assert seen | later == set(range(total))


def test_a_restart_offers_unfinished_tables_a_new_snapshot(bench: CaptureBench, writer: Writer) -> None:
    bench.execute(ORDERS)
    with bench.running() as running:
        first, _ = offered(bench)
        offered(bench, "public.orders")
        bench.tables.complete_copy("public.orders", position=bench.wal_end(), rows=0)
    assert bench.tables.get("public.items").state is TableState.PENDING  # type: ignore[union-attr]
    with bench.running() as running:
        second, position = offered(bench)
        seen = copied(bench, second)
        total = writer.stop()
        bench.catch_up(running)
        assert bench.tables.get("public.orders").state is TableState.LIVE  # type: ignore[union-attr]
    assert first != second
    assert seen | streamed(bench, position) == set(range(total))
    assert not seen & streamed(bench, position)


def test_a_table_that_is_added_later_is_copied_without_a_gap(bench: CaptureBench, writer: Writer) -> None:
    bench.execute(ORDERS)
    bench.settings = bench.settings_for("public.orders")
    with bench.running() as running:
        offered(bench, "public.orders")
        finish_copies(bench)
        bench.catch_up(running)
    bench.settings = bench.settings_for("public.orders,public.items")
    with bench.running() as running:
        snapshot, position = offered(bench)
        seen = copied(bench, snapshot)
        wait_for(lambda: writer.count > len(seen) + 50, what="rows after the snapshot")
        total = writer.stop()
        bench.catch_up(running)
    assert seen | streamed(bench, position) == set(range(total))
    assert not seen & streamed(bench, position)
    assert bench.tables.get("public.orders").state is TableState.LIVE  # type: ignore[union-attr]


def test_a_resync_while_it_runs_gets_a_snapshot(bench: CaptureBench) -> None:
    bench.execute(ITEMS, "INSERT INTO items VALUES (1)")
    with bench.running():
        offered(bench)
        finish_copies(bench)
        wait_for(lambda: not holders(bench), what="the snapshot to be released")
        bench.tables.request_copy("public.items")
        snapshot, _ = offered(bench)
        assert copied(bench, snapshot) == {1}


def test_a_broken_snapshot_is_replaced(bench: CaptureBench) -> None:
    bench.execute(ITEMS, "INSERT INTO items VALUES (1)")
    with bench.running():
        first, _ = offered(bench)
        for pid in holders(bench):
            bench.execute(f"SELECT pg_terminate_backend({pid})")
        wait_for(lambda: offered(bench)[0] != first, what="another snapshot")
        assert copied(bench, offered(bench)[0]) == {1}


def holders(bench: CaptureBench) -> list[int]:
    query = (
        "SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction' AND application_name = 'icestream'"
        f" AND datname = '{bench.source.info.dbname}' AND backend_xmin IS NOT NULL"
    )
    return [row[0] for row in bench.rows(query)]


def test_skipped_copies_are_not_offered(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    entry = bench.settings.tables[0].model_copy(update={"skip_snapshot": True})
    bench.settings = bench.settings.model_copy(update={"tables": (entry,)})
    with bench.running() as running:
        bench.catch_up(running)
        assert holders(bench) == []
    assert [row.state for row in bench.tables.all()] == [TableState.LIVE]


def test_a_slot_without_an_epoch_is_made_anew(bench: CaptureBench) -> None:
    """As after a crash between the creation of the slot and the beginning of its epoch."""
    bench.execute(ITEMS)
    (cluster,) = bench.rows("SELECT system_identifier FROM pg_control_system()")[0]
    Identity(bench.db, bench.slot).intend_slot(bench.slot, cluster)
    bench.execute(f"SELECT pg_create_logical_replication_slot('{bench.slot}', 'pgoutput')")
    before = bench.confirmed()
    with bench.running() as running:
        bench.catch_up(running)
        assert bench.confirmed() > before
        identity = Identity(bench.db, bench.slot).load()
        assert identity is not None and identity.slot_name == bench.slot


def test_a_slot_that_nothing_proves_to_be_ours_is_left_alone(bench: CaptureBench) -> None:
    """As another program's with the default name, or ours when the settings name another state."""
    bench.execute(ITEMS, f"SELECT pg_create_logical_replication_slot('{bench.slot}', 'pgoutput')")
    before = bench.confirmed()
    failure = refusal(bench)
    assert isinstance(failure, SourceError) and failure.retry is Retry.NEVER
    assert failure.hint and f"pg_drop_replication_slot('{bench.slot}')" in failure.hint
    assert bench.confirmed() == before
    assert bench.tables.all() == [] and not bench.rows("SELECT FROM pg_publication"), "nothing else was touched"
    bench.drop_slot()
    with bench.running() as running:
        bench.catch_up(running)


def test_a_slot_of_another_plugin_is_left_alone(bench: CaptureBench) -> None:
    bench.execute(ITEMS, f"SELECT pg_create_logical_replication_slot('{bench.slot}', 'test_decoding')")
    with bench.running() as running:
        assert isinstance(running.failure(), SourceError)
    assert bench.rows(f"SELECT plugin FROM pg_replication_slots WHERE slot_name = '{bench.slot}'") == [
        ("test_decoding",)
    ]


def running_pipeline(bench: CaptureBench) -> None:
    """Live tables, a few changes, and capture stopped."""
    bench.execute(ITEMS)
    with bench.running() as running:
        offered(bench)
        finish_copies(bench)
        bench.execute("INSERT INTO items VALUES (1), (2)")
        bench.catch_up(running)


def refusal(bench: CaptureBench) -> BaseException:
    with bench.running() as running:
        return running.failure()


def assert_parked(bench: CaptureBench, words: str) -> None:
    (row,) = bench.tables.all()
    assert row.state is TableState.PARKED
    assert row.reason and words in row.reason
    assert row.hint and "resync" in row.hint


def test_a_dropped_slot_parks_the_tables_and_is_never_made_anew_silently(bench: CaptureBench) -> None:
    running_pipeline(bench)
    bench.drop_slot()
    for _ in range(2):
        failure = refusal(bench)
        assert isinstance(failure, SlotLost) and failure.hint
        assert_parked(bench, "is gone")
        assert bench.confirmed() == 0


def test_after_a_resync_a_lost_slot_begins_a_new_epoch(bench: CaptureBench) -> None:
    running_pipeline(bench)
    before = Identity(bench.db, bench.slot).load()
    bench.drop_slot()
    assert isinstance(refusal(bench), SlotLost)
    bench.tables.request_copy("public.items")
    with bench.running() as running:
        snapshot, position = offered(bench)
        bench.execute("INSERT INTO items VALUES (3)")
        bench.catch_up(running)
        assert copied(bench, snapshot) == {1, 2}
    assert streamed(bench, position) == {3}
    after = Identity(bench.db, bench.slot).load()
    assert before and after and before.epoch != after.epoch


def test_a_slot_that_was_dropped_and_made_anew_is_found_out(bench: CaptureBench) -> None:
    running_pipeline(bench)
    bench.drop_slot()
    bench.execute("INSERT INTO items VALUES (3)")
    bench.execute(f"SELECT pg_create_logical_replication_slot('{bench.slot}', 'pgoutput')")
    assert isinstance(refusal(bench), SlotLost)
    assert_parked(bench, "made anew")


def test_a_slot_that_someone_advanced_is_found_out(bench: CaptureBench) -> None:
    running_pipeline(bench)
    bench.execute("INSERT INTO items VALUES (3)")
    bench.execute(f"SELECT pg_replication_slot_advance('{bench.slot}', pg_current_wal_lsn())")
    assert isinstance(refusal(bench), SlotLost)
    assert_parked(bench, "moved")


def test_a_state_from_an_older_copy_is_found_out(bench: CaptureBench) -> None:
    running_pipeline(bench)
    stored = bench.db.fetch("SELECT lsn FROM {schema}.flushed_lsn")[0]["lsn"]
    with bench.running() as running:
        bench.execute("INSERT INTO items VALUES (3)")
        bench.catch_up(running)
    bench.db.execute("UPDATE {schema}.flushed_lsn SET lsn = %(lsn)s", {"lsn": stored})
    assert isinstance(refusal(bench), SlotLost)
    assert_parked(bench, "older copy")


@pytest.mark.parametrize(
    ("tampering", "words"),
    [
        ("UPDATE {schema}.flushed_lsn SET lsn = lsn + 1000000000000", "restored"),
        ("UPDATE {schema}.pipeline_meta SET timeline = timeline + 1", "timeline"),
        ("UPDATE {schema}.pipeline_meta SET epoch = gen_random_uuid()", "epoch"),
        ("DELETE FROM {schema}.flushed_lsn", "how far"),
    ],
)
def test_a_state_and_a_source_that_cannot_both_be_true_park_the_tables(
    bench: CaptureBench, tampering: str, words: str
) -> None:
    running_pipeline(bench)
    bench.db.execute(tampering)
    assert isinstance(refusal(bench), SlotLost)
    assert_parked(bench, words)


def test_a_slot_that_is_lost_while_it_runs_parks_the_tables(bench: CaptureBench) -> None:
    running_pipeline(bench)
    with bench.running() as running:
        wait_for(bench.last_reply, what="the stream")
        bench.execute(f"SELECT pg_terminate_backend({bench.walsender()})")
        wait_for(lambda: _drop(bench) or not running.is_alive, what="a moment to drop the slot")
        assert isinstance(running.failure(), SlotLost)
    assert_parked(bench, "is gone")


def test_a_stream_that_cannot_be_read_any_more_parks_the_tables(
    bench: CaptureBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the catalog still shows the slot as healthy, as with a WAL segment that is gone."""
    running_pipeline(bench)

    def fail(*_: object) -> None:
        raise SlotLost("WAL is gone")

    monkeypatch.setattr(Session, "run", fail)
    failure = refusal(bench)
    assert isinstance(failure, SlotLost) and failure.hint == COPY_ANEW
    assert_parked(bench, "WAL is gone")


def _drop(bench: CaptureBench) -> bool:
    """Tries to be quicker than the capture, again and again."""
    try:
        bench.drop_slot()
    except psycopg.errors.ObjectInUse:
        bench.execute(f"SELECT pg_terminate_backend({bench.walsender() or 0})")
        return False
    except psycopg.errors.UndefinedObject:
        return True
    return True


def test_another_cluster_is_refused_and_left_as_it_is(bench: CaptureBench) -> None:
    running_pipeline(bench)
    bench.db.execute("UPDATE {schema}.pipeline_meta SET system_identifier = 42")
    failure = refusal(bench)
    assert isinstance(failure, WrongCluster) and "42" in str(failure)
    assert [row.state for row in bench.tables.all()] == [TableState.LIVE]


def test_a_table_that_is_gone_from_the_settings_leaves_the_publication(bench: CaptureBench) -> None:
    bench.execute(ITEMS, ORDERS)
    with bench.running() as running:
        bench.catch_up(running)
    bench.settings = bench.settings_for("public.orders")
    with bench.running() as running:
        bench.execute("INSERT INTO items VALUES (1)", "INSERT INTO orders VALUES (1)")
        bench.catch_up(running)
    with connect(bench.conninfo) as conn:
        publication = find_publication(conn, PUBLICATION)
        assert publication is not None and {str(name) for name in publication.members} == {"public.orders"}
        assert drop_publication(conn, PUBLICATION, pipeline=bench.slot)
    assert {row.key: row.state for row in bench.tables.all()}["public.items"] is TableState.REMOVED


def test_a_table_that_was_taken_out_of_the_publication_is_parked(bench: CaptureBench) -> None:
    bench.execute(ORDERS)
    running_pipeline(bench)
    bench.execute(f"ALTER PUBLICATION {PUBLICATION} DROP TABLE items", "INSERT INTO items VALUES (3)")
    with bench.running() as running:
        bench.catch_up(running)
        states = {row.key: (row.state, row.reason or "") for row in bench.tables.all()}
        assert states["public.orders"] == (TableState.LIVE, "")
        assert states["public.items"][0] is TableState.PARKED and "missing" in states["public.items"][1]
        bench.tables.request_copy("public.items")
        assert copied(bench, offered(bench)[0]) == {1, 2, 3}


def test_a_dropped_publication_parks_the_tables_until_they_are_copied_anew(bench: CaptureBench) -> None:
    running_pipeline(bench)
    bench.execute(f"DROP PUBLICATION {PUBLICATION}", "INSERT INTO items VALUES (3)")
    assert isinstance(refusal(bench), SlotLost)
    assert_parked(bench, "is gone")
    bench.tables.request_copy("public.items")
    with bench.running() as running:
        snapshot, position = offered(bench)
        bench.execute("INSERT INTO items VALUES (4)")
        bench.catch_up(running)
        assert copied(bench, snapshot) == {1, 2, 3}
    assert streamed(bench, position) == {4}


def test_a_foreign_publication_is_not_touched(bench: CaptureBench) -> None:
    bench.execute(ITEMS, ORDERS, f"CREATE PUBLICATION {PUBLICATION} FOR TABLE items")
    failure = refusal(bench)
    assert isinstance(failure, SourceError)
    assert failure.hint and f'ALTER PUBLICATION "{PUBLICATION}" ADD TABLE ONLY "public"."orders"' in failure.hint
    bench.execute(failure.hint.split("`")[1])
    with bench.running() as running:
        bench.catch_up(running)
    with connect(bench.conninfo) as conn:
        publication = find_publication(conn, PUBLICATION)
        assert publication is not None and publication.owner is None
        assert not drop_publication(conn, PUBLICATION, pipeline=bench.slot)


def test_a_partition_that_a_foreign_publication_sends_by_itself_is_refused(bench: CaptureBench) -> None:
    bench.execute(
        "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY LIST (id)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1)",
        f"CREATE PUBLICATION {PUBLICATION} FOR TABLE parts",
    )
    failure = refusal(bench)
    assert isinstance(failure, SourceError) and failure.hint
    bench.execute(failure.hint.split("`")[1])
    with bench.running() as running:
        bench.catch_up(running)


def test_it_can_be_stopped_while_the_slot_waits_for_a_transaction(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    with psycopg.connect(bench.conninfo) as busy:
        busy.execute("INSERT INTO items VALUES (1)")
        with bench.running() as running:
            wait_for(lambda: bench.rows(_CREATING), what="the slot to be created")
            running.stop()
        wait_for(
            lambda: not bench.rows(f"SELECT FROM pg_replication_slots WHERE slot_name = '{bench.slot}'"),
            what="the unfinished slot to be gone",
        )


_CREATING = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'CREATE_REPLICATION_SLOT%' AND backend_type = 'walsender'"


def test_a_slot_in_use_is_waited_for_at_the_first_start(bench: CaptureBench) -> None:
    """An active slot that no epoch knows belongs to somebody; it is neither dropped nor fought for."""
    running_pipeline(bench)
    with bench.running() as running:
        wait_for(bench.last_reply, what="the stream")
        bench.db.execute("DELETE FROM {schema}.pipeline_meta")
        start = bench.starter()
        with pytest.raises(SlotInUse):
            start.prepare(threading.Event())
        running.check()
        bench.execute(f"SELECT pg_terminate_backend({bench.walsender()})")
        running.failure()
