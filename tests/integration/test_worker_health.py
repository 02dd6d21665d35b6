"""What a worker says about itself while it can't work."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from icestream.config import load
from icestream.errors import LakeUnavailable
from icestream.materialize.worker import Worker
from icestream.model.ids import new_id
from icestream.observe.health import Pulse
from icestream.state.database import Database
from icestream.state.leases import Leases
from support.settings_texts import ENOUGH
from support.waiting import wait_for


@pytest.fixture
def pulse() -> Pulse:
    return Pulse("worker")


@pytest.fixture
def worker(state: Database, pulse: Pulse) -> Worker:
    return Worker(load(None, ENOUGH).settings, worker_id="w", db=state, pulse=pulse)


def test_a_worker_is_not_ready_while_another_holds_its_lease(state: Database, worker: Worker, pulse: Pulse) -> None:
    settings, stop = load(None, ENOUGH).settings, threading.Event()
    Leases(state, settings.pipeline, settings.state.group).acquire("w", new_id(), 60)
    thread = threading.Thread(target=worker.run, args=(stop,))
    thread.start()
    try:
        wait_for(lambda: pulse.ready().problems == ("worker waits for its lease",), what="the worker to wait")
        assert pulse.live().ok
    finally:
        stop.set()
        thread.join()


def test_a_worker_that_has_lost_its_lease_or_spark_is_not_ready(worker: Worker, pulse: Pulse) -> None:
    worker._beat(SimpleNamespace(held=True))  # type: ignore[arg-type]
    assert pulse.ready().ok
    worker._beat(SimpleNamespace(held=False))  # type: ignore[arg-type]
    assert pulse.ready().problems == ("worker has lost its lease",)
    with pytest.raises(LakeUnavailable):
        worker._require_spark(SimpleNamespace(is_running=False))  # type: ignore[arg-type]
    assert pulse.ready().problems == ("worker has lost Spark",)
