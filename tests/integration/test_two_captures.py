"""A standby beside a running capture does no harm, and goes on when the first one ends."""

from __future__ import annotations

import threading

import pytest
from psycopg import sql

from icestream.errors import SlotInUse
from icestream.model.table import TableState
from icestream.sources.postgres.connection import connect
from icestream.sources.postgres.slot import turn
from support.capturing import CaptureBench
from support.waiting import wait_for

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, v text)"
KEY = "public.items"


def offered(bench: CaptureBench) -> str:
    def find() -> str | None:
        row = bench.tables.get(KEY)
        return row.snapshot_name if row and row.state is TableState.COPYING else None

    return wait_for(find, what="a snapshot")


def copied(bench: CaptureBench, snapshot: str) -> set[int]:
    with connect(bench.conninfo) as conn, conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        conn.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
        return {row[0] for row in conn.execute("SELECT id FROM items")}


def go_live(bench: CaptureBench) -> None:
    row = bench.tables.get(KEY)
    assert row and row.snapshot_lsn
    bench.tables.complete_copy(KEY, position=row.snapshot_lsn, rows=0)


def test_a_standby_judges_nothing_while_the_slot_is_read(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    with bench.running() as first:
        offered(bench)
        go_live(bench)
        wait_for(bench.last_reply, what="the stream")
        for number in range(20):
            bench.execute(f"INSERT INTO items VALUES ({number})")
            start = bench.starter()
            for looking in (lambda start=start: start.prepare(threading.Event()), start.standing):
                with pytest.raises(SlotInUse):
                    looking()
        bench.catch_up(first)
    assert [row.state for row in bench.tables.all()] == [TableState.LIVE]


def test_only_one_capture_prepares_at_a_time(bench: CaptureBench) -> None:
    """Two at once would drop each other's new slot."""
    bench.execute(ITEMS)
    with connect(bench.conninfo) as conn:
        with turn(conn, bench.slot), pytest.raises(SlotInUse):
            bench.starter().prepare(threading.Event())
        assert bench.confirmed() == 0
        bench.starter().prepare(threading.Event())
        assert bench.confirmed() > 0


def test_a_standby_leaves_the_snapshot_of_a_first_copy_alone(
    bench: CaptureBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.execute(ITEMS, "INSERT INTO items VALUES (1)")
    with bench.running() as first:
        snapshot = offered(bench)
        wait_for(bench.last_reply, what="the stream")
        with bench.running():
            wait_for(lambda: caplog.text.count("is read by another process") > 2, what="the standby to be refused")
            assert offered(bench) == snapshot
        assert offered(bench) == snapshot, "also when the standby ends"
        assert copied(bench, snapshot) == {1}
        first.check()


def test_a_standby_that_takes_over_offers_its_own_snapshot(bench: CaptureBench) -> None:
    bench.execute(ITEMS, "INSERT INTO items VALUES (1)")
    with bench.running() as first:
        snapshot = offered(bench)
        wait_for(bench.last_reply, what="the stream")
        with bench.running():
            first.stop()
            wait_for(lambda: offered(bench) != snapshot, what="another snapshot")
            assert copied(bench, offered(bench)) == {1}
