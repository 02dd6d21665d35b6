"""The snapshot of a first copy: it is held without a lock on any table."""

from __future__ import annotations

import threading

import psycopg
import pytest

from icestream.model.table import TableState
from support.capturing import CaptureBench
from support.waiting import wait_for

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, v text)"
ORDERS = "CREATE TABLE orders (id int PRIMARY KEY, v text)"
PARTS = (
    "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY LIST (id)",
    "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1)",
)


def state_of(bench: CaptureBench, key: str) -> TableState | None:
    row = bench.tables.get(key)
    return row.state if row else None


def wait_until(bench: CaptureBench, key: str, state: TableState) -> None:
    wait_for(lambda: state_of(bench, key) is state, what=f"{key} to be {state}")


def finish_copy(bench: CaptureBench, key: str) -> None:
    row = bench.tables.get(key)
    assert row and row.snapshot_lsn
    bench.tables.complete_copy(key, position=row.snapshot_lsn, rows=0)


@pytest.mark.parametrize(
    "statement",
    ["VACUUM FULL items", "TRUNCATE items", "ALTER TABLE items ADD COLUMN w int DEFAULT 7", "VACUUM FULL parts_1"],
)
def test_nobody_waits_for_the_end_of_a_copy(bench: CaptureBench, statement: str) -> None:
    bench.execute(ITEMS, *PARTS)
    with bench.running():
        wait_until(bench, "public.items", TableState.COPYING)
        wait_until(bench, "public.parts", TableState.COPYING)
        with psycopg.connect(bench.conninfo, autocommit=True, options="-c lock_timeout=100ms") as conn:
            conn.execute(statement.encode())


def test_a_table_whose_copy_was_given_up_gets_another_snapshot_and_the_others_keep_theirs(bench: CaptureBench) -> None:
    bench.execute(ITEMS, ORDERS)
    with bench.running():
        wait_until(bench, "public.items", TableState.COPYING)
        before = {row.key: row for row in bench.tables.all()}
        position = before["public.items"].snapshot_lsn
        assert position is not None
        assert bench.tables.give_up_copy("public.items", position=position)
        wait_until(bench, "public.items", TableState.COPYING)
        after = {row.key: row for row in bench.tables.all()}
    assert after["public.items"].snapshot_name != before["public.items"].snapshot_name
    assert after["public.orders"].snapshot_name == before["public.orders"].snapshot_name


def test_only_the_tables_at_a_lost_snapshot_wait_for_another(bench: CaptureBench) -> None:
    bench.execute(ITEMS, ORDERS)
    with bench.running():
        wait_until(bench, "public.items", TableState.COPYING)
        kept = bench.tables.get("public.orders")
        bench.tables.request_copy("public.items")
        wait_until(bench, "public.items", TableState.COPYING)
        lost = bench.tables.get("public.items")
        assert kept and lost and lost.snapshot_name != kept.snapshot_name
        bench.execute(_END_NEWEST_HOLDER)
        wait_for(lambda: _snapshot_of(bench, "public.items") not in (None, lost.snapshot_name), what="another snapshot")
        assert _snapshot_of(bench, "public.orders") == kept.snapshot_name


_END_NEWEST_HOLDER = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = 'icestream' AND state = 'idle in transaction'
   AND backend_xmin IS NOT NULL
 ORDER BY backend_start DESC LIMIT 1
"""


def _snapshot_of(bench: CaptureBench, key: str) -> str | None:
    row = bench.tables.get(key)
    return row.snapshot_name if row else None


def test_what_nobody_foresaw_does_not_end_the_tending(bench: CaptureBench, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots, stop = bench.snapshots(), threading.Event()
    rounds: list[int] = []

    def tend(_stop: threading.Event) -> None:
        rounds.append(1)
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(snapshots, "tend", tend)
    thread = threading.Thread(target=snapshots.run, args=(stop, lambda: True), daemon=True)
    thread.start()
    wait_for(lambda: len(rounds) > 1, what="a second round")
    stop.set()
    thread.join(30)
