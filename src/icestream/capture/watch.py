"""Looks after the source while its changes are streamed, on a connection of its own: the stream does not tell all."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

from icestream.capture.budget import SlotBudget
from icestream.capture.fitness import Fitness
from icestream.capture.membership import Membership
from icestream.capture.untold import Untold
from icestream.observe.logs import fields
from icestream.sources.postgres.connection import Connection, connect, querying
from icestream.sources.postgres.ddl_trigger import find_trigger

log = logging.getLogger(__name__)

_LOOK_UP_S: Final = 0.1  # for the stream to begin, for a call, for the end
_LOCK_TIMEOUT: Final = "SET lock_timeout = '2s'"  # who waits for a table lets others wait behind him


class Watch:
    """Sets `changed` when there is something to settle before the stream may go on; all else it settles itself."""

    def __init__(
        self,
        source: str,
        membership: Membership,
        untold: Untold,
        budget: SlotBudget,
        fitness: Fitness,
        *,
        interval_s: float,
    ) -> None:
        self.changed = threading.Event()
        self.publication_oid = 0
        self.trigger: str | None = None  # the event triggers that the stream was begun with
        self._source = source
        self._membership = membership
        self._untold = untold
        self._budget = budget
        self._fitness = fitness
        self._interval_s = interval_s
        self._called = threading.Event()

    def call(self) -> None:
        """Something has just happened: the next look is not to wait for its turn."""
        self._called.set()

    def run(self, stop: threading.Event, is_streaming: Callable[[], bool]) -> None:
        """Looks as soon as the stream has begun, then at every interval, until `stop`."""
        next_look = time.monotonic()
        while not stop.wait(_LOOK_UP_S):
            is_due = time.monotonic() >= next_look or self._called.is_set()
            if is_due and is_streaming() and not self.changed.is_set():
                self._called.clear()
                self._look()
                next_look = time.monotonic() + self._interval_s

    def _look(self) -> None:
        try:
            with self._connected() as conn:
                if not self._membership.is_settled(conn, self.publication_oid) or find_trigger(conn) != self.trigger:
                    self.changed.set()
                    return
                self._untold.settle(conn)
                self._budget.look(conn)
                self._fitness.look(conn)
        except Exception as err:
            log.warning("source cannot be looked at", exc_info=err, extra=fields(next_try_s=self._interval_s))

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with closing(connect(self._source)) as conn:
            with querying():
                conn.execute(_LOCK_TIMEOUT)
            yield conn
