"""SIGINT and SIGTERM: the first asks to drain, the second stops at once."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def exit_at_once(signum: int) -> None:
    """What is durable stays durable, so nothing has to be said goodbye to."""
    os._exit(128 + signum)


class StopSignals:
    """While entered, the first stop signal sets `stop`, the second calls `at_once` with its number.

    Python runs handlers in its main thread only, and that may be waiting where a signal does not reach it. So the
    interpreter writes each signal's number into a socket as it comes in, and a thread reads it there.
    """

    def __init__(self, stop: threading.Event, *, at_once: Callable[[int], None] = exit_at_once) -> None:
        self._stop = stop
        self._at_once = at_once
        self._reading, self._writing = socket.socketpair()
        self._writing.setblocking(False)
        self._previous: dict[signal.Signals, Any] = {}
        self._previous_fd = -1
        self._thread = threading.Thread(target=self._react, name="signals", daemon=True)

    def __enter__(self) -> StopSignals:
        self._thread.start()
        self._previous_fd = signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        for signum in STOP_SIGNALS:
            self._previous[signum] = signal.signal(signum, _nothing)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signum, handler in self._previous.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(self._previous_fd)
        self._writing.close()
        self._thread.join()
        self._reading.close()

    def _react(self) -> None:
        """Until the other end is closed."""
        while numbers := self._reading.recv(16):
            for signum in numbers:
                if signum not in STOP_SIGNALS:
                    continue
                if self._stop.is_set():
                    self._at_once(signum)
                self._stop.set()


def _nothing(signum: int, frame: FrameType | None) -> None:
    """A handler has to be there for the number to be written."""
