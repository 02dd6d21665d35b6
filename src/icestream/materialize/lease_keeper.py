"""A worker's lease: taken before any work, renewed by a thread of its own so that no long Spark job loses it."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType

from icestream.errors import StateError, StateUnavailable
from icestream.model.ids import new_id
from icestream.observe.logs import fields
from icestream.state.leases import Held, Leases

log = logging.getLogger(__name__)

_RENEWALS_PER_TTL = 3


class LeaseKeeper:
    """`with LeaseKeeper(...)` waits for the lease, keeps it, and gives it back at the end."""

    def __init__(self, leases: Leases, worker_id: str, *, ttl_s: float, stop: threading.Event) -> None:
        self._leases = leases
        self._worker_id = worker_id
        self._ttl_s = ttl_s
        self._stop = stop
        self._instance = new_id()
        self._ends = float("-inf")  # by the monotonic clock, at the latest
        self._held = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)

    @property
    def held(self) -> bool:
        return self._held.is_set()

    def __enter__(self) -> LeaseKeeper:
        self.wait_for_lease()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self.held:
            self._try_release()

    def _try_release(self) -> None:
        """If the state does not answer, the lease ends by itself."""
        try:
            self._leases.release(self._worker_id, self._instance)
        except StateUnavailable as err:
            log.debug("lease could not be given back", extra=fields(reason=err))

    def wait_for_lease(self) -> None:
        """Returns with the lease, or when the worker is told to stop. Never works beside another holder of the id."""
        told = False
        while not self._stop.is_set():
            asked = time.monotonic()
            try:
                answer = self._leases.acquire(self._worker_id, self._instance, self._ttl_s)
            except StateUnavailable as err:
                log.warning("state database does not answer", extra=fields(reason=err))
                self._stop.wait(1.0)
                continue
            if not isinstance(answer, Held):
                self._ends = asked + self._ttl_s
                self._held.set()
                return
            if not told:
                holder = fields(worker=self._worker_id, host=answer.host, pid=answer.pid, expires=answer.expires_at)
                log.warning("worker id is in use, waiting for its lease to end", extra=holder)
                told = True
            self._stop.wait(min(1.0, self._ttl_s / 10))

    def _keep(self) -> None:
        while not self._ended.wait(self._ttl_s / _RENEWALS_PER_TTL):
            asked = time.monotonic()
            try:
                kept = self._leases.renew(self._worker_id, self._instance, self._ttl_s)
            except StateError as err:
                log.warning("lease can't be renewed now", extra=fields(worker=self._worker_id, reason=err))
                kept = asked < self._ends  # others take over when it ends, whether we can ask or not
            else:
                self._ends = asked + self._ttl_s if kept else self._ends
            if not kept and self.held:
                self._held.clear()
                log.warning("lease was lost", extra=fields(worker=self._worker_id))
