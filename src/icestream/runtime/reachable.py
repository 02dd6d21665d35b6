"""Waiting, at a start, for databases that cannot be reached yet, and for a capture that has not begun yet."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from icestream.errors import SourceUnavailable, StateMissing, StateUnavailable
from icestream.observe.health import Pulse
from icestream.observe.logs import fields
from icestream.runtime.backoff import Backoff

log = logging.getLogger(__name__)

_NEXT_LOOK_S = 1.0
_BEGIN_HINT = "start `icestream stream-only` with the same settings, which makes it"


def when_reachable(step: Callable[[], object], stop: threading.Event, pulse: Pulse) -> bool:
    """Repeats `step`, with growing pauses, until both databases could be reached; False if told to stop before.

    Raises what a person has to change. A connection attempt that hangs delays the answer to `stop` by its timeout.
    """
    backoff = Backoff()
    while not stop.is_set():
        try:
            step()
        except (SourceUnavailable, StateUnavailable) as err:
            delay = backoff.delay_after(0)
            pulse.pause(f"waits for PostgreSQL: {err}")
            log.warning("waiting for postgresql", extra=fields(reason=err, hint=err.hint, next_try_s=delay))
            stop.wait(delay)
        else:
            pulse.pause("is starting")
            return not stop.is_set()
    return False


def when_capture_has_begun(step: Callable[[], object], stop: threading.Event, pulse: Pulse) -> bool:
    """As `when_reachable`, and repeats `step` while there is no coordination schema; that is said once."""
    is_told = False
    while not stop.is_set():
        try:
            return when_reachable(step, stop, pulse)
        except StateMissing as err:
            if not is_told:
                log.warning("waiting for capture", extra=fields(reason=err, hint=_BEGIN_HINT))
            is_told = True
            pulse.pause("waits for capture")
            stop.wait(_NEXT_LOOK_S)
    return False
