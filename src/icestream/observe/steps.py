"""The points between two durable steps, where the fault tests stop a process.

Code that has just made something durable says so with `reached("offsets claimed")`. With nothing set that costs one
look at an empty tuple. The environment can ask for a fault at a step, optionally only the n-th time it is reached:

    ICESTREAM_CRASH_AT="offsets claimed:3"    the process kills itself (SIGKILL)
    ICESTREAM_PAUSE_AT="batch staged"         the process stops itself (SIGSTOP) until someone continues it
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping

from icestream.errors import SettingsError

CRASH_AT = "ICESTREAM_CRASH_AT"
PAUSE_AT = "ICESTREAM_PAUSE_AT"


class Fault:
    """Sends `signum` to this process when `step` is reached for the `nth` time; once."""

    def __init__(self, step: str, nth: int, signum: signal.Signals) -> None:
        self.step = step
        self.nth = nth
        self.signum = signum
        self._left = nth
        self._lock = threading.Lock()

    def observe(self, step: str) -> None:
        if step == self.step and self._is_due():
            os.kill(os.getpid(), self.signum)

    def _is_due(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left == 0


def faults_in(environ: Mapping[str, str]) -> tuple[Fault, ...]:
    asked = ((CRASH_AT, signal.SIGKILL), (PAUSE_AT, signal.SIGSTOP))
    return tuple(_parse(name, environ[name], signum) for name, signum in asked if environ.get(name))


def _parse(name: str, value: str, signum: signal.Signals) -> Fault:
    step, colon, nth = value.partition(":")
    if not step or (colon and not (nth.isdecimal() and int(nth) > 0)):
        raise SettingsError(f"{name}={value!r} is not of the form 'step' or 'step:n' with n from 1")
    return Fault(step, int(nth) if colon else 1, signum)


_FAULTS = faults_in(os.environ)


def reached(step: str) -> None:
    """Says that `step` is done and durable."""
    for fault in _FAULTS:
        fault.observe(step)
