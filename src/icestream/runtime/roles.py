"""The two roles: capture fills the log, a worker empties it into the tables."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager

from icestream.config.settings import Settings
from icestream.errors import SettingsError
from icestream.log.retention import LogRetention
from icestream.log.store import Store, open_store
from icestream.observe.health import Pulse
from icestream.runtime.capture_counters import CaptureCounters
from icestream.runtime.opening import opened_state
from icestream.runtime.preparation import make_warehouse, prepare, require_fit
from icestream.runtime.reachable import when_capture_has_begun, when_reachable
from icestream.runtime.running import beside, run_until_stopped, serving_metrics
from icestream.runtime.spark_checks import check_jars, check_object_store
from icestream.state.database import Database
from icestream.state.migrate import require_current
from icestream.state.retention import Retention


def run_capture_role(settings: Settings, *, supervised: bool) -> None:
    """Captures until asked to stop, then flushes and acknowledges what it holds."""
    from icestream.capture.capture import Capture

    pulse, counters = Pulse("capture"), CaptureCounters()

    def capture(stop: threading.Event) -> None:
        with opened_state(settings) as db, serving_metrics(settings, db, pulse, counters, supervised=supervised):
            if not when_reachable(lambda: prepare(settings, db), stop, pulse):
                return
            store = open_store(settings.sink.staging_root, settings.sink.catalog_properties())
            with _sweeping(settings, db, store):
                Capture(settings, db=db, store=store, metrics=counters, pulse=pulse).run(stop)

    run_until_stopped(capture, supervised=supervised)


def run_worker_role(settings: Settings, *, worker_id: str | None, supervised: bool) -> None:
    """Materializes until asked to stop, then applies what is in the log and gives its lease back.

    Waits for a capture that has not begun yet, so that roles can be started in any order.
    """
    from icestream.materialize.worker import Worker

    name, pulse = _worker_id(settings, worker_id), Pulse("worker")

    def work(stop: threading.Event) -> None:
        with opened_state(settings) as db, serving_metrics(settings, db, pulse, supervised=supervised):
            require_fit([*check_object_store(settings), *check_jars(settings)])
            if not when_capture_has_begun(lambda: require_current(db), stop, pulse):
                return
            make_warehouse(settings)
            Worker(settings, worker_id=name, db=db, pulse=pulse).run(stop)

    run_until_stopped(work, supervised=supervised)


def _sweeping(settings: Settings, db: Database, store: Store) -> AbstractContextManager[None]:
    """Removes staged files that nobody needs while the block runs."""
    retention = Retention(db, settings.pipeline)
    kept = settings.state
    sweeper = LogRetention(
        retention, store, keep_s=kept.log_retention, parked_keep_s=kept.parked_retention, grace_s=kept.upload_grace
    )
    return beside(sweeper.run, name="retention")


def _worker_id(settings: Settings, given: str | None) -> str:
    worker_id = given or settings.sink.materializer_worker_id
    if not worker_id:
        raise SettingsError(
            "a worker needs a name that no other worker of its group has",
            hint="give it with --worker-id or MATERIALIZER_WORKER_ID",
        )
    return worker_id
