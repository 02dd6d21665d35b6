"""How far each table of a group has come, for reading quickly. The Iceberg tables themselves are the truth."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from icestream.model.cursor import Cursor
from icestream.state.database import Database
from icestream.state.pool import Row

_ALL = """
SELECT table_name, epoch::text, last_offset, position, copied, snapshot_id, rows_applied, lag_ms, last_committed
FROM {schema}.mat_cursor
WHERE pipeline = %(pipeline)s AND group_name = %(group)s
"""
_LOAD = _ALL + "AND table_name = %(table)s"
# Within an epoch positions only grow, and at one position offsets do; a new copy may begin at a smaller offset. That
# the table itself went back is said by who works on it.
_RECORD = """
INSERT INTO {schema}.mat_cursor AS stored
    (pipeline, group_name, table_name, epoch, last_offset, position, copied, snapshot_id, rows_applied, lag_ms)
VALUES
    (%(pipeline)s, %(group)s, %(table)s, %(epoch)s, %(offset)s, %(position)s, %(copied)s, %(snapshot_id)s, %(rows)s,
     %(lag_ms)s)
ON CONFLICT (pipeline, group_name, table_name) DO UPDATE
SET epoch = excluded.epoch, last_offset = excluded.last_offset, position = excluded.position,
    copied = excluded.copied, snapshot_id = excluded.snapshot_id, lag_ms = excluded.lag_ms, last_committed = now(),
    rows_applied = stored.rows_applied + excluded.rows_applied,
    shape_lsn = CASE WHEN stored.epoch = excluded.epoch THEN stored.shape_lsn ELSE 0 END
WHERE stored.epoch <> excluded.epoch OR %(went_back)s
   OR (stored.position, stored.last_offset, stored.copied) < (excluded.position, excluded.last_offset, excluded.copied)
RETURNING table_name, epoch::text, last_offset, position, copied, snapshot_id, rows_applied, lag_ms, last_committed
"""
_LONGEST_LAG_MS = 2**31 - 1  # what the column holds; 24.8 days


@dataclass(frozen=True)
class StoredCursor:
    table: str
    cursor: Cursor
    snapshot_id: int | None
    rows_applied: int  # since the group began
    lag_ms: int | None  # how old the oldest change of the newest commit was when that was made; 24.8 days at most
    last_committed: datetime


class Cursors:
    def __init__(self, db: Database, pipeline: str, group: str) -> None:
        self._db = db
        self._scope = {"pipeline": pipeline, "group": group}

    def load(self, table: str) -> StoredCursor | None:
        row = self._db.fetch_one(_LOAD, {**self._scope, "table": table})
        return _stored(row) if row else None

    def all(self) -> dict[str, StoredCursor]:
        """By table."""
        return {row["table_name"]: _stored(row) for row in self._db.fetch(_ALL, self._scope)}

    def record(
        self,
        table: str,
        cursor: Cursor,
        *,
        snapshot_id: int | None,
        rows: int,
        lag_ms: int | None = None,
        went_back: bool = False,
    ) -> StoredCursor:
        """Notes what the table says after a publish; gives what is stored then.

        A late note of an older cursor of the same epoch changes nothing, nor does a second note of the same one: `rows`
        count once. A cursor of another epoch replaces the old one. `went_back`: someone rolled the table back, and
        what was known is no longer true.
        """
        values = {
            **self._scope,
            "table": table,
            "epoch": cursor.epoch,
            "offset": cursor.offset,
            "position": int(cursor.position),
            "copied": cursor.copied,
            "snapshot_id": snapshot_id,
            "rows": rows,
            "lag_ms": None if lag_ms is None else min(lag_ms, _LONGEST_LAG_MS),
            "went_back": went_back,
        }
        with self._db.transaction() as tx:
            row = tx.fetch_one(_RECORD, values) or tx.fetch_one(_LOAD, values)
        assert row is not None  # the upsert wrote the row, or met it and keeps it locked
        return _stored(row)


def _stored(row: Row) -> StoredCursor:
    return StoredCursor(
        table=row["table_name"],
        cursor=Cursor(row["epoch"], row["last_offset"], row["position"], row["copied"]),
        snapshot_id=row["snapshot_id"],
        rows_applied=row["rows_applied"],
        lag_ms=row["lag_ms"],
        last_committed=row["last_committed"],
    )
