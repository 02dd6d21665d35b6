"""Workers come and go while the source changes: each table always has one of them, and the result is the same."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from icestream.materialize.table_work import TableWork
from icestream.model.ids import new_id
from icestream.model.table import TableState
from icestream.runtime.status import read_status
from icestream.state.leases import Leases
from icestream.state.sightings import SeenShape
from icestream.state.tables import TableRow
from support.processes import write_settings
from support.shop import Shop
from support.waiting import wait_for
from support.working import working


def test_workers_join_leave_and_die_during_a_load(shop: Shop) -> None:
    customers, orders = shop.keys
    with shop.pipeline.capturing():
        with shop.changing():
            first = shop.processes.worker("a")
            first.wait_for_output("worker is ready")
            second = shop.processes.worker("b")
            wait_for(lambda: _shares(shop) == {"a": [customers], "b": [orders]}, "b to get its share")
            second.wait_for_output("worker is ready")
            _wait_for_progress(shop)

            twin = shop.processes.worker("a")
            twin.wait_for_output("worker id is in use, waiting for its lease to end")
            assert "worker is ready" not in twin.output, "two processes work under one id"
            first.stop()
            twin.wait_for_output("worker is ready")
            _wait_for_progress(shop)

            second.kill()
            wait_for(lambda: _shares(shop) == {"a": [customers, orders]}, "the lease of b to end")
            _wait_for_progress(shop)
        shop.wait_until_applied()
        twin.stop()
    assert _shares(shop) == {}, "a worker that leaves is unregistered at once"
    shop.assert_mirrored()


def test_a_process_that_waits_for_its_worker_id_can_be_stopped(shop: Shop) -> None:
    leases = Leases(shop.pipeline.db, shop.pipeline.owner.pipeline, shop.pipeline.owner.group)
    leases.acquire("a", new_id(), 600)
    waiting = shop.processes.worker("a")
    waiting.wait_for_output("worker id is in use, waiting for its lease to end")
    waiting.send(signal.SIGTERM)
    assert waiting.wait_for_end() == 0, waiting.output
    assert leases.active() == ["a"], "the lease is not its own to end"


def test_two_tables_are_worked_on_at_the_same_time(
    shop: Shop, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each table's work waits for that of the other one: with one after the other, both would wait for ever."""
    write_settings(shop.processes.settings, shop.pipeline, warehouse, materializer_concurrency="2")
    both, run = threading.Barrier(2, timeout=60), TableWork.run

    def run_together(work: TableWork, row: TableRow, *, max_rows: int, seen: SeenShape | None) -> int:
        if row.state is TableState.COPYING:
            both.wait()
        return run(work, row, max_rows=max_rows, seen=seen)

    monkeypatch.setattr(TableWork, "run", run_together)
    with shop.pipeline.capturing(), working(shop):
        shop.wait_until_applied()
    assert not both.broken
    shop.assert_mirrored()


def _shares(shop: Shop) -> dict[str, list[str]]:
    """What each live worker has to do, as `icestream status` tells it."""
    workers = read_status(shop.pipeline.db, shop.pipeline.settings).workers
    return {worker.id: list(worker.tables) for worker in workers if worker.alive}


def _wait_for_progress(shop: Shop) -> None:
    """Until both tables have taken in something that came after now."""
    then = {key: stored.cursor.position for key, stored in shop.pipeline.cursors.all().items()}

    def moved() -> bool:
        now = shop.pipeline.cursors.all()
        return all(key in now and now[key].cursor.position > then.get(key, 0) for key in shop.keys)

    wait_for(moved, "both tables to come forward")
