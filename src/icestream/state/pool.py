"""A small pool of connections.

psycopg's own pool connects in background threads: a wrong password shows up only as a timeout, and after an outage
its growing pauses outlast the outage. Here the thread that needs a connection makes it and gets its error at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import psycopg

from icestream.errors import StateUnavailable

Row: TypeAlias = dict[str, Any]
Connection: TypeAlias = psycopg.Connection[Row]

_WAIT_S = 30.0


class Pool:
    """Lends each connection to one thread at a time; a broken one is thrown away, never lent again."""

    def __init__(self, connect: Callable[[], Connection], *, size: int) -> None:
        self._connect = connect
        self._size = size
        self._free = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        """A working connection outside of any transaction. Raises what `connect` raises."""
        if not self._free.acquire(timeout=_WAIT_S):
            raise StateUnavailable(f"all {self._size} connections to the state database are busy")
        try:
            conn = self._working_idle() or self._connect()
            try:
                yield conn
            finally:
                self._take_back(conn)
        finally:
            self._free.release()

    def close(self) -> None:
        """Closes the idle connections; lent ones are closed when they come back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for conn in idle:
            conn.close()

    def _working_idle(self) -> Connection | None:
        while True:
            with self._lock:
                conn = self._idle.pop() if self._idle else None
            if conn is None or _answers(conn):
                return conn
            conn.close()

    def _take_back(self, conn: Connection) -> None:
        if conn.broken or conn.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            conn.close()
            return
        with self._lock:
            if not self._closed:
                self._idle.append(conn)
                return
        conn.close()


def _answers(conn: Connection) -> bool:
    with suppress(psycopg.OperationalError, psycopg.InterfaceError):
        conn.execute("SELECT 1")
        return True
    return False
