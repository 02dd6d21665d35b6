"""Whether a process works: what `/live` and `/ready` answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Health:
    """An answer to a probe; `problems` says what is wrong, and is empty when all is well."""

    problems: tuple[str, ...] = ()
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.problems


Probe = Callable[[], Health]


def healthy() -> Health:
    return Health()


SILENT_AFTER_S = 300.0  # generous: a restart that was not needed costs more than one that comes late


class Beats:
    """Loops say that they turn; one that has been silent for longer than it promised is stuck."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last: dict[str, tuple[float, float]] = {}

    def beat(self, loop: str, *, within_s: float) -> None:
        """Called by a loop at every turn; the next call is due within `within_s`."""
        with self._lock:
            self._last[loop] = (self._clock(), within_s)

    def end(self, loop: str) -> None:
        """The loop is over and no longer expected to beat."""
        with self._lock:
            self._last.pop(loop, None)

    def check(self) -> Health:
        now = self._clock()
        with self._lock:
            silent = {loop: now - at for loop, (at, within_s) in self._last.items() if now - at > within_s}
        return Health(tuple(f"{loop} has been silent for {age:.0f} s" for loop, age in sorted(silent.items())))


class Pulse:
    """What a role says about its loop: that it turns, or why it does not. Safe to use from many threads."""

    def __init__(self, loop: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._loop = loop
        self._beats = Beats(clock)
        self._paused: str | None = "is starting"

    def beat(self) -> None:
        """The loop has turned and does its work; the next turn is due soon."""
        self._paused = None
        self._beats.beat(self._loop, within_s=SILENT_AFTER_S)

    def pause(self, why: str) -> None:
        """The loop does not turn for now, however long that takes. `why` continues a sentence about it."""
        self._paused = why
        self._beats.end(self._loop)

    def live(self) -> Health:
        return self._beats.check()

    def ready(self) -> Health:
        paused = self._paused
        return self.live() if paused is None else Health((f"{self._loop} {paused}",))
