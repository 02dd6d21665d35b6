"""Keeps the shop changing, in a thread of its own."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

import psycopg

from icestream.embedded.shop import Shop

PAUSE_S = 0.01  # a hundred transactions a second leave a small machine room for the pipeline


class Workload:
    """Runs from `start()` to `stop()`. An error of the thread is raised by `check()` and `stop()`."""

    def __init__(self, conninfo: str, seed: int) -> None:
        self._conn = psycopg.connect(conninfo, autocommit=True)
        self.shop = Shop(self._conn, seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shop", daemon=True)
        self._error: psycopg.Error | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._conn.close()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when the last transaction is committed."""
        self._stop.set()
        self._thread.join()
        self.check()

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._stop.wait(PAUSE_S):
                self.shop.happen()
        except psycopg.Error as err:
            self._error = err
