"""A capture that runs in a thread of the test, and a look at what it put into the log."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from psycopg.conninfo import conninfo_to_dict

from icestream.capture.capture import Capture
from icestream.capture.membership import Membership
from icestream.capture.options import CaptureOptions, FlushLimits
from icestream.capture.snapshots import CopySnapshots
from icestream.capture.start import Start
from icestream.capture.untold import Untold
from icestream.config import Settings, load
from icestream.log.store import LocalStore, Store
from icestream.model.position import Lsn
from icestream.model.table import TableState
from icestream.state.database import Database
from icestream.state.log_entries import LogEntries
from icestream.state.log_index import LogIndex
from icestream.state.migrate import migrate
from icestream.state.sightings import Sightings
from icestream.state.tables import Tables
from support.state import SCHEMA
from support.waiting import wait_for

PUBLICATION = "shop_pub"


@dataclass(frozen=True)
class Staged:
    """One change in the log."""

    op: str
    lsn: int
    xid: int
    data: dict[str, str | None] | None
    old: dict[str, str | None] | None
    unchanged: list[str] | None


class CaptureBench:
    """A source database with its state and staging folder. Tables have to exist before the first capture starts."""

    def __init__(self, conninfo: str, folder: Path, *, tables: str = "public.*") -> None:
        self.conninfo = conninfo
        self.slot = f"shop_{conninfo_to_dict(conninfo)['dbname']}"  # slots of all databases share one list
        self.staging = folder / "staged"
        self.settings = self.settings_for(tables)
        self.db = Database(conninfo, SCHEMA)
        migrate(self.db)
        self.index = LogIndex(self.db, self.slot)
        self.tables = Tables(self.db, self.slot)
        self.sightings = Sightings(self.db, self.slot)
        self.source = psycopg.connect(conninfo, autocommit=True)
        self.options = replace(
            CaptureOptions.from_settings(self.settings),
            flush=FlushLimits(interval_s=0.1, rows=5000, size=4 * 1024**2),
            standby_interval_s=0.2,
            watch_interval_s=0.5,
        )

    def settings_for(self, tables: str) -> Settings:
        return load(None, self.environ(tables), {}).settings

    def environ(self, tables: str = "public.*") -> dict[str, str]:
        return {
            "POSTGRES_URL": self.conninfo,
            "TABLES": tables,
            "WAREHOUSE": str(self.staging.parent),
            "SLOT_NAME": self.slot,
            "PUBLICATION_NAME": PUBLICATION,
        }

    def close(self) -> None:
        self.source.close()
        self.db.close()

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self.source.execute(statement.encode())

    def capture(self, *, store: Store | None = None, options: CaptureOptions | None = None) -> Capture:
        return Capture(
            self.settings, db=self.db, store=store or LocalStore(self.staging), options=options or self.options
        )

    def starter(self) -> Start:
        return Start(self.settings, self.options, self.db, self.snapshots(), self.untold())

    def snapshots(self) -> CopySnapshots:
        membership = Membership(self.tables, self.options.publication)
        return CopySnapshots(self.options.source, self.tables, membership, self.untold())

    def untold(self) -> Untold:
        return Untold(self.tables, self.sightings)

    @contextmanager
    def running(self, *, store: Store | None = None, options: CaptureOptions | None = None) -> Iterator[Running]:
        """Stops and drains at the end of the block, and raises what ended the capture before that."""
        running = Running(self.capture(store=store, options=options))
        try:
            yield running
        finally:
            running.stop()

    def wal_end(self) -> Lsn:
        row = self.source.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
        assert row is not None
        return Lsn.parse(row[0])

    def flushed(self) -> Lsn:
        stored = self.index.flushed()
        return stored.position if stored else Lsn(0)

    def catch_up(self, running: Running | None = None) -> None:
        """Until everything that is committed now is in the log."""
        goal = self.wal_end()

        def reached() -> bool:
            if running is not None:
                running.check()
            return self.flushed() >= goal

        wait_for(reached, f"the log to reach {goal}")

    def go_live(self) -> None:
        """As if workers had made the first copies."""

        def finished() -> bool:
            for row in self.tables.all():
                if row.state is TableState.COPYING and row.snapshot_lsn:
                    self.tables.complete_copy(row.key, position=row.snapshot_lsn, rows=0)
            return {row.state for row in self.tables.all()} <= {TableState.LIVE}

        wait_for(finished, what="all tables to be live")

    def drop_slot(self) -> None:
        """Once its last reader is really gone."""

        def dropped() -> bool:
            try:
                self.source.execute("SELECT pg_drop_replication_slot(%s)", [self.slot])
            except psycopg.errors.ObjectInUse:
                return False
            return True

        wait_for(dropped, what=f"slot {self.slot} to be dropped")

    def confirmed(self) -> Lsn:
        row = self.source.execute(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s", [self.slot]
        ).fetchone()
        return Lsn.parse(row[0]) if row else Lsn(0)

    def sent(self) -> Lsn:
        """How far the walsender of the slot has come."""
        row = self.source.execute(
            "SELECT sent_lsn::text FROM pg_stat_replication r JOIN pg_replication_slots s ON s.active_pid = r.pid"
            " WHERE s.slot_name = %s",
            [self.slot],
        ).fetchone()
        return Lsn.parse(row[0]) if row and row[0] else Lsn(0)

    def sent_is_still(self) -> bool:
        """Whether the walsender sends nothing for a while."""
        before = self.sent()
        return all(self.sent() == before for _ in range(50))

    def walsender(self) -> int | None:
        row = self.source.execute(
            "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s", [self.slot]
        ).fetchone()
        return row[0] if row else None

    def last_reply(self) -> float:
        """When the server last heard from us, in seconds."""
        row = self.source.execute(
            "SELECT extract(epoch FROM reply_time)::float8 FROM pg_stat_replication WHERE pid = %s", [self.walsender()]
        ).fetchone()
        return row[0] or 0.0 if row else 0.0

    def reconnect(self) -> None:
        self.source.close()
        self.source = psycopg.connect(self.conninfo, autocommit=True)

    def changes(self, table: str) -> list[Staged]:
        entries = LogEntries(self.db, self.slot).after(table, 0, max_rows=2**62, max_bytes=2**62)
        offsets = [(entry.start_offset, entry.end_offset) for entry in entries]
        assert all(end == start for (_, end), (start, _) in pairwise(offsets)), offsets
        return [change for entry in entries for change in self._read(entry.path)]

    def _read(self, path: str) -> Iterator[Staged]:
        # Without field renaming: a struct's names are the columns of the source.
        for row in pq.read_table(self.staging / path).to_pylist():
            yield Staged(row["_op"], row["_lsn"], row["_xid"], row["_data"], row["_old"], row["_unchanged_cols"])

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.source.execute(query.encode()).fetchall()


class Running:
    def __init__(self, capture: Capture) -> None:
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(capture,), daemon=True)
        self._thread.start()

    def _run(self, capture: Capture) -> None:
        try:
            capture.run(self._stop)
        except BaseException as err:  # noqa: BLE001
            self._failure = err

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def failure(self) -> BaseException:
        """Waits for the capture to give up, and gives the reason."""
        wait_for(lambda: not self._thread.is_alive(), "the capture to give up")
        assert self._failure is not None, "the capture ended without a failure"
        failure, self._failure = self._failure, None
        return failure

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "the capture did not stop"
        self.check()


def replay(changes: list[Staged], key: tuple[str, ...], position: int = 0) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The table that the changes after `position` make of an empty one; the reference for whole logs."""
    table: dict[tuple[Any, ...], dict[str, Any]] = {}
    for change in changes:
        if change.lsn > position:
            _apply(table, change, key)
    return table


def _apply(table: dict[tuple[Any, ...], dict[str, Any]], change: Staged, key: tuple[str, ...]) -> None:
    if change.op == "T":
        table.clear()
        return
    old = change.old and tuple(change.old[name] for name in key)
    before = table.pop(old, None) if old else None
    if change.op == "D":
        assert before is not None, f"delete of a row that is not there: {change}"
        return
    assert change.data is not None
    new = tuple(change.data[name] for name in key)
    before = before or table.get(new)
    assert (change.op == "I") == (before is None), f"insert over, or update of nothing: {change}"
    kept = {name: before[name] for name in change.unchanged or ()} if before else {}
    table[new] = {**change.data, **kept}


@pytest.fixture
def bench(database: str, tmp_path: Path) -> Iterator[CaptureBench]:
    bench = CaptureBench(database, tmp_path)
    yield bench
    bench.close()
