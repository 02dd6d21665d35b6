"""Capture: from the source's replication slot into the log, until it is told to stop."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from icestream.capture.budget import SlotBudget
from icestream.capture.fitness import Fitness
from icestream.capture.membership import Membership
from icestream.capture.metrics import CaptureMetrics, NoMetrics
from icestream.capture.options import CaptureOptions
from icestream.capture.patience import delays, may_help
from icestream.capture.session import Session
from icestream.capture.snapshots import CopySnapshots
from icestream.capture.start import Start
from icestream.capture.untold import Untold
from icestream.capture.watch import Watch
from icestream.config.settings import Settings
from icestream.errors import IcestreamError, SlotLost
from icestream.log.store import Store, open_store
from icestream.observe.health import Pulse
from icestream.observe.logs import fields
from icestream.state.database import Database
from icestream.state.log_index import LogIndex
from icestream.state.sightings import Sightings
from icestream.state.tables import Tables

log = logging.getLogger(__name__)

_HEALTHY_S: Final = 60.0  # a session this long ended for a new reason, so the pauses begin anew


class Capture:
    """One per slot: a second one waits for the slot, and its claims would be refused."""

    def __init__(
        self,
        settings: Settings,
        *,
        db: Database,
        store: Store | None = None,
        options: CaptureOptions | None = None,
        metrics: CaptureMetrics | None = None,
        pulse: Pulse | None = None,
    ) -> None:
        self._options = options or CaptureOptions.from_settings(settings)
        self._store = store or open_store(settings.sink.staging_root, settings.sink.catalog_properties())
        self._metrics = metrics or NoMetrics()
        self._pulse = pulse or Pulse("capture")
        self._index = LogIndex(db, self._options.pipeline)
        tables = Tables(db, self._options.pipeline)
        membership = Membership(tables, self._options.publication)
        untold = Untold(tables, Sightings(db, self._options.pipeline))
        self._snapshots = CopySnapshots(self._options.source, tables, membership, untold)
        self._start = Start(settings, self._options, db, self._snapshots, untold)
        self._watch = Watch(
            self._options.source,
            membership,
            untold,
            SlotBudget(self._options.slot, self._options.slot_budget),
            Fitness(settings, tables),
            interval_s=self._options.watch_interval_s,
        )
        self._streaming = threading.Event()  # set while the slot is ours

    def run(self, stop: threading.Event) -> None:
        """Until `stop`; then what is committed and read is made durable and acknowledged before it returns.

        Connects again, with growing pauses, after any failure that can pass. Raises the others, and ClaimRefused:
        another capture may be alive, so the process should start over.
        """
        threads: list[threading.Thread] = []
        ended = threading.Event()
        try:
            if self._insist_on_preparing(stop):
                threads = self._start_threads(ended)
                self._stream(stop)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
            self._snapshots.close()

    def _start_threads(self, ended: threading.Event) -> list[threading.Thread]:
        runs = {"snapshots": self._snapshots.run, "watch": self._watch.run}
        threads = [
            threading.Thread(target=run, args=(ended, self._streaming.is_set), name=name, daemon=True)
            for name, run in runs.items()
        ]
        for thread in threads:
            thread.start()
        return threads

    def _insist_on_preparing(self, stop: threading.Event) -> bool:
        """False if it was told to stop before it got there."""
        for delay in delays():
            if stop.is_set():
                return False
            try:
                self._start.prepare(stop)
            except IcestreamError as err:
                self._pause_after(err, delay, stop)
            else:
                return True
        return False

    def _stream(self, stop: threading.Event) -> None:
        pauses = delays()
        while not stop.is_set():
            began = time.monotonic()
            try:
                self._session(stop)
            except IcestreamError as err:
                if time.monotonic() - began >= _HEALTHY_S:
                    pauses = delays()
                self._pause_after(err, next(pauses), stop)

    def _session(self, stop: threading.Event) -> None:
        self._watch.changed.clear()
        standing = self._start.standing()
        self._watch.publication_oid, self._watch.trigger = standing.publication_oid, standing.trigger
        log.info("streaming", extra=fields(slot=self._options.slot, position=standing.flushed))
        session = Session(self._options, standing, self._index, self._store, self._metrics, self._pulse)
        try:
            session.run(stop, self._streaming, self._watch.changed, self._watch.call)
        except SlotLost as err:
            raise self._start.refuse(err.message) from err

    def _pause_after(self, err: IcestreamError, delay: float, stop: threading.Event) -> None:
        if not may_help(err):
            raise err
        self._metrics.failed(err)
        self._pulse.pause(f"was interrupted: {err}")
        if stop.is_set():
            log.warning("stopped without a last flush; the source sends it again", exc_info=err)
            return
        log.warning("capture was interrupted", exc_info=err, extra=fields(next_try_s=delay))
        stop.wait(delay)
