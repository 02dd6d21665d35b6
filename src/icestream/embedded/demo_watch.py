"""What the demo sees of both ends while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psycopg

from icestream.config.catalog import EMBEDDED_FILE
from icestream.config.settings import Settings
from icestream.embedded.row_counts import row_counts
from icestream.embedded.shop import TABLES
from icestream.errors import StateVersionMismatch
from icestream.model.position import Lsn
from icestream.model.table import TableState
from icestream.runtime.status import TableStatus, read_tables
from icestream.state.database import Database
from icestream.state.log_index import LogIndex

_COUNT = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in TABLES)  # noqa: S608  fixed names
_WAL_END = "SELECT pg_current_wal_insert_lsn()::text"


@dataclass(frozen=True)
class TableView:
    """One line of the demo's live table."""

    name: str
    source_rows: int
    iceberg_rows: int
    applied: int
    lag_seconds: float
    last_commit: datetime | None


class DemoWatch:
    """Looks at PostgreSQL, the catalog and the state; gathers the lag of every table commit it sees."""

    def __init__(self, source: psycopg.Connection, db: Database, settings: Settings) -> None:
        self.lags_ms: list[int] = []
        self._source = source
        self._db = db
        self._settings = settings
        self._commits: dict[str, datetime] = {}

    def tables(self) -> list[TableView]:
        source_rows: dict[str, int] = dict(self._source.execute(_COUNT).fetchall())
        iceberg_rows = row_counts(self._catalog(), self._settings.sink.catalog_name)
        status = {table.name: table for table in self._status()}
        self._note_lags(list(status.values()))
        return [_view(name, source_rows[name], iceberg_rows.get(name, 0), status.get(name)) for name in TABLES]

    def copied(self) -> int:
        """How many tables have their first copy."""
        return sum(table.state == TableState.LIVE for table in self._status())

    def parked(self) -> TableStatus | None:
        return next((table for table in self._status() if table.state == TableState.PARKED), None)

    def applied(self) -> int:
        return sum(table.rows_applied for table in self._status())

    def wal_end(self) -> Lsn:
        """Everything committed so far lies before it."""
        row = self._source.execute(_WAL_END).fetchone()
        assert row is not None
        return Lsn.parse(row[0])

    def has_applied(self, position: Lsn) -> bool:
        """Whether all that was committed before `position` is in the tables."""
        flushed = LogIndex(self._db, self._settings.pipeline).flushed()
        captured = flushed is not None and flushed.position >= position
        return captured and not any(table.pending_rows for table in self._status())

    def _status(self) -> Sequence[TableStatus]:
        try:
            return read_tables(self._db, self._settings)
        except StateVersionMismatch:
            return ()  # the pipeline has not made its schema yet

    def _catalog(self) -> Path:
        return Path(self._settings.sink.warehouse) / EMBEDDED_FILE

    def _note_lags(self, tables: Sequence[TableStatus]) -> None:
        for table in tables:
            is_new = table.last_commit is not None and self._commits.get(table.name) != table.last_commit
            if is_new and table.commit_lag_ms is not None:
                self.lags_ms.append(table.commit_lag_ms)
            if table.last_commit is not None:
                self._commits[table.name] = table.last_commit


def _view(name: str, source_rows: int, iceberg_rows: int, status: TableStatus | None) -> TableView:
    return TableView(
        name=name,
        source_rows=source_rows,
        iceberg_rows=iceberg_rows,
        applied=status.rows_applied if status else 0,
        lag_seconds=status.lag_seconds if status else 0.0,
        last_commit=status.last_commit if status else None,
    )


def percentile(values: Sequence[int], fraction: float) -> int | None:
    """The nearest rank; None when nothing was measured."""
    if not values:
        return None
    return sorted(values)[min(int(fraction * len(values)), len(values) - 1)]
