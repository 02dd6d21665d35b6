"""The whole way in one process: a real source, real capture in a thread, and cycles that a test runs by hand."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from icestream.capture.capture import Capture
from icestream.config import load
from icestream.config.settings import Settings
from icestream.lake.history import Owner
from icestream.lake.session import Lake
from icestream.lake.tasks import Tasks
from icestream.materialize.cycle import Log
from icestream.materialize.range_copy import CopyTools
from icestream.materialize.table_work import TableWork, Workbench
from icestream.model.position import Lsn
from icestream.model.table import TableState
from icestream.state.copy_progress import CopyProgress
from icestream.state.cursors import Cursors
from icestream.state.database import Database
from icestream.state.dead_letters import DeadLetters
from icestream.state.groups import Groups
from icestream.state.identity import Identity
from icestream.state.log_entries import LogEntries
from icestream.state.log_index import LogIndex
from icestream.state.migrate import migrate
from icestream.state.sightings import Sightings
from icestream.state.tables import TableRow, Tables
from icestream.verify.compare import Comparison, compare_table
from support.waiting import wait_for


class Pipeline:
    """Capture runs inside of `capturing()` blocks; `bring_forward` does what workers would do, on the shared Spark."""

    def __init__(
        self, lake: Lake, conninfo: str, folder: Path, *, namespace: str, tables: Any = "public.*", **settings: Any
    ) -> None:
        self.lake = lake
        self.conninfo = conninfo
        self._configured = lambda tables, others: _settings(conninfo, folder, namespace, tables, settings | others)
        self.settings = self._configured(tables, {})
        self._work: dict[str, TableWork] = {}
        self.db = Database(conninfo, self.settings.state.coordinator_schema)
        migrate(self.db)
        name, group = self.settings.pipeline, self.settings.state.group
        self.index = LogIndex(self.db, name)
        self.entries = LogEntries(self.db, name)
        self.tables = Tables(self.db, name, group)
        self.letters = DeadLetters(self.db, name)
        self.identity = Identity(self.db, name)
        self.cursors = Cursors(self.db, name, group)
        self.sightings = Sightings(self.db, name)
        self.progress = CopyProgress(self.db, name, group)
        self.tasks = Tasks(lake.spark)
        logical = self.settings.source.logical
        self.copying = CopyTools(
            self.tasks,
            self.progress,
            self.letters,
            logical.snapshot_chunk_pages,
            logical.snapshot_target_file_size,
        )
        self.owner = Owner(name, group)
        Groups(self.db, name).register(group)
        self.source = psycopg.connect(conninfo, autocommit=True)

    def close(self) -> None:
        self.tasks.close()
        self.source.close()
        self.db.close()

    def begin_anew(self) -> None:
        """As workers that start again would: nothing is kept from before."""
        self._work.clear()

    def configure(self, tables: Any = "public.*", **settings: Any) -> None:
        """Other tables, or other settings, for the next capture."""
        self.settings = self._configured(tables, settings)

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self.source.execute(statement.encode())

    @contextmanager
    def capturing(self) -> Iterator[None]:
        """Capture runs inside the block; at its end it has drained."""
        stop, failure = threading.Event(), []

        def capture() -> None:
            try:
                Capture(self.settings, db=self.db).run(stop)
            except BaseException as err:  # noqa: BLE001 - raised again by the test's thread
                failure.append(err)

        thread = threading.Thread(target=capture, name="capture")
        thread.start()
        try:
            wait_for(lambda: failure or self._is_started(), what="capture to start")
            yield
        finally:
            stop.set()
            thread.join()
        if failure:
            raise failure[0]

    def written(self) -> Lsn:
        """How far the server has written its WAL."""
        (end,) = self.source.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone() or ("0/0",)
        return Lsn.parse(end)

    def wait_until_captured(self) -> None:
        """Until everything that is committed now is in the log, and was looked at for what the stream does not tell."""
        goal = self.written()
        wait_for(lambda: self._looked() >= goal, f"a look at the source after {goal}")
        goal = self._looked()
        wait_for(lambda: self._flushed() >= goal, f"the log to reach {goal}")

    def bring_forward(self, *, max_rows: int = 1_000_000, at_once: int = 1) -> None:
        """Copies and cycles until there is nothing to do, copies that tables ask for themselves included."""
        while rows := self.rows_with_work():
            with ThreadPoolExecutor(at_once) as threads:
                list(threads.map(partial(self.advance, max_rows=max_rows), rows))

    def advance(self, row: TableRow, *, max_rows: int = 1_000_000) -> None:
        """One step of a table: its copy, or one cycle."""
        seen = self.sightings.unsettled_shapes(self.owner.group).get(row.key)
        self.work(row).run(row, max_rows=max_rows, seen=seen)

    def work(self, row: TableRow) -> TableWork:
        """Kept for the table, as a worker does: its Spark session is warm the next time."""
        identity = self.identity.load()
        assert identity is not None
        kept = self._work.get(row.key)
        if kept is None or not kept.fits(row, identity.epoch):
            bench = Workbench(
                self.lake, self.owner, self.conninfo, self.tables, self.cursors, self.sightings, self.copying
            )
            kept = self._work[row.key] = TableWork(bench, row, self._log(identity.epoch))
        return kept

    def _log(self, epoch: str) -> Log:
        return Log(epoch, self.settings.sink.staging_root, self.entries, self.index, self.letters)

    def compare(self, key: str) -> Comparison:
        row = self.tables.get(key)
        assert row is not None
        return compare_table(self.lake, self.conninfo, row.source, row.target)

    def assert_equal(self) -> None:
        """Every table that is not parked equals its source, row by row."""
        for row in self.tables.all():
            found = self.compare(row.key)
            assert (found.different_rows, found.source_rows) == (0, found.target_rows), (row.key, found)

    def query(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.lake.spark.sql(text).collect()]

    def rows_with_work(self) -> list[TableRow]:
        """Tables to copy and tables with changes, once capture has offered a snapshot to those that need one."""

        def is_offered() -> bool:
            return not any(row.state is TableState.PENDING and row.reason for row in self.tables.all())

        self.tables.adopt(self.settings.target_for)
        wait_for(is_offered, what="capture to offer a snapshot to a table that needs another copy")
        waiting = {pending.table for pending in self.entries.pending(self.owner.group)}
        waiting |= set(self.sightings.unsettled_shapes(self.owner.group))
        return [
            row
            for row in self.tables.all()
            if row.state is TableState.COPYING or (row.state is TableState.LIVE and row.key in waiting)
        ]

    def _is_started(self) -> bool:
        rows = self.tables.all()
        return bool(rows) and all(row.state is not TableState.PENDING for row in rows)

    def _looked(self) -> Lsn:
        look = self.sightings.last_look()
        return Lsn(0) if look is None else look[0]

    def _flushed(self) -> Lsn:
        flushed = self.index.flushed()
        return Lsn(0) if flushed is None else flushed.position


def _settings(conninfo: str, folder: Path, namespace: str, tables: Any, others: Mapping[str, Any]) -> Settings:
    overrides = {
        "source.postgres.url": conninfo,
        "source.logical.standby_interval": "200ms",
        "source.logical.watch_interval": "200ms",
        "source.logical.slot_name": namespace,
        "source.logical.publication_name": namespace,
        "sink.warehouse": str(folder),
        "sink.namespace": namespace,
        "sink.flush_interval": "100ms",
        "tables": tables,
        **others,
    }
    return load(None, {}, overrides).settings
