"""Doing a step again until it succeeds."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from icestream.capture.metrics import CaptureMetrics
from icestream.errors import ClaimRefused, IcestreamError, Retry, StateUnavailable
from icestream.observe.logs import fields

log = logging.getLogger(__name__)

_FIRST_DELAY_S: Final = 0.2
_LONGEST_DELAY_S: Final = 10.0
_BETWEEN_WARNINGS_S: Final = 60.0
# Then the stream is given up: a server that shuts down waits for its reader, and the state may live in that server.
_STATE_PATIENCE_S: Final = 5.0
_AT_ONCE: Final = float("-inf")  # by the monotonic clock


def delays() -> Iterator[float]:
    """Growing pauses between attempts."""
    delay = _FIRST_DELAY_S
    while True:
        yield delay
        delay = min(delay * 2, _LONGEST_DELAY_S)


def may_help(error: IcestreamError) -> bool:
    """Whether doing the same again can help; after a refused claim only a start from the stored position does."""
    return error.retry is not Retry.NEVER and not isinstance(error, ClaimRefused)


class Patience:
    """Repeats steps that fail for a reason that can pass, until `stop` is set. Safe to use from many threads.

    Trouble is logged when it begins, then once a minute, and when it is over.
    """

    def __init__(self, stop: threading.Event, metrics: CaptureMetrics) -> None:
        self._stop = stop
        self._metrics = metrics
        self._lock = threading.Lock()
        self._began: float | None = None
        self._next_warning = _AT_ONCE

    def insist(self, step: Callable[[], None]) -> None:
        """Returns once the step has succeeded.

        Raises its error if repeating cannot help, after `stop`, or when the state database was away for some seconds.
        """
        began = time.monotonic()
        for delay in delays():
            try:
                step()
            except IcestreamError as err:
                if not may_help(err) or self._stop.is_set() or _is_enough(err, time.monotonic() - began):
                    raise
                self._note_trouble(err)
                self._stop.wait(delay)
            else:
                self._note_success()
                return

    def _note_trouble(self, err: IcestreamError) -> None:
        self._metrics.failed(err)
        now = time.monotonic()
        with self._lock:
            self._began = self._began or now
            if now < self._next_warning:
                return
            self._next_warning = now + _BETWEEN_WARNINGS_S
        log.warning("flush is waiting", exc_info=err)

    def _note_success(self) -> None:
        if self._began is None:
            return
        with self._lock:
            began, self._began, self._next_warning = self._began, None, _AT_ONCE
        if began is not None:
            log.info("flush goes on", extra=fields(waited_s=time.monotonic() - began))


def _is_enough(error: IcestreamError, tried_s: float) -> bool:
    return isinstance(error, StateUnavailable) and tried_s >= _STATE_PATIENCE_S
