"""A real worker in a thread of the test, on the Spark that all tests share."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from icestream.config import load
from icestream.lake.session import Lake
from icestream.materialize import worker
from icestream.state.database import Database
from support.shop import Shop


class _SharedLake(Lake):
    def close(self) -> None:
        """It belongs to the whole run."""


@contextmanager
def working(shop: Shop, worker_id: str = "a") -> Iterator[None]:
    """A worker with the settings file of the processes; at the end of the block it drains."""
    settings = load(shop.processes.settings, {}).settings
    lake = _SharedLake(shop.pipeline.lake.spark, settings.sink.catalog_name)
    db = Database(settings.state_conninfo(), settings.state.coordinator_schema)
    stop, failures = threading.Event(), []

    def work() -> None:
        try:
            worker.Worker(settings, worker_id=worker_id, db=db).run(stop)
        except BaseException as err:  # noqa: BLE001 - raised again by the test's thread
            failures.append(err)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "open_lake", lambda options: lake)
        thread = threading.Thread(target=work, name=f"worker {worker_id}")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            db.close()
    if failures:
        raise failures[0]
