"""A load that goes on: each of many tables gets a small transaction every second."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager

import psycopg

from icestream.model.position import Lsn
from source import SourceDatabase

EVERY_S = 1.0
_INSERTS = 3  # of bench.touch in many_tables.sql


class SteadyLoad:
    """Changes the tables from a thread of its own, and knows since when each change has been committed.

    If the source can't keep up, transactions come as fast as it takes them: `made` tells.
    """

    def __init__(self, source: SourceDatabase, tables: Sequence[str], rows: int) -> None:
        self._source = source
        self._tables = tables
        self._rows = rows
        self._unseen: dict[str, deque[tuple[int, float]]] = {table: deque() for table in tables}
        self._seen: set[str] = set()
        self._stop = threading.Event()
        self._future: Future[None] | None = None
        self.made = 0  # transactions

    @contextmanager
    def running(self) -> Iterator[None]:
        with ThreadPoolExecutor(1, thread_name_prefix="load") as pool:
            self._future = pool.submit(self._run)
            try:
                yield
            finally:
                self._stop.set()
        self._future.result()

    def ages(self, positions: Mapping[str, int]) -> list[float]:
        """Of each table: how long the oldest change that is not visible has been committed; 0 if all are visible.

        `positions` by table. Raises what has ended the load.
        """
        if self._future is not None and self._future.done():
            self._future.result()
        return [self._age(table, positions.get(table, 0)) for table in self._tables]

    def begin_round(self) -> None:
        self._seen.clear()

    def is_round_over(self) -> bool:
        """Whether in this round changes of each table have become visible, as far as `ages` was told."""
        return len(self._seen) == len(self._tables)

    def _age(self, table: str, position: int) -> float:
        waiting = self._unseen[table]
        while waiting and waiting[0][0] < position:
            waiting.popleft()
            self._seen.add(table)
        return time.monotonic() - waiting[0][1] if waiting else 0.0

    def _run(self) -> None:
        password = self._source.address.password_file.read_text()
        with closing(psycopg.connect(self._source.dsn, password=password, autocommit=True)) as conn:
            began = time.monotonic()
            for number in itertools.count():
                due = began + number * EVERY_S / len(self._tables)
                if self._stop.wait(max(0.0, due - time.monotonic())):
                    return
                self._touch(conn, *divmod(number, len(self._tables)))

    def _touch(self, conn: psycopg.Connection, turn: int, which: int) -> None:
        table = self._tables[which]
        row = conn.execute("SELECT bench.touch(%s, %s)::text", [table, self._rows + turn * _INSERTS]).fetchone()
        assert row is not None
        self._unseen[table].append((Lsn.parse(row[0]), time.monotonic()))
        self.made += 1
