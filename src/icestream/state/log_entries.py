"""The reading side of the log: which files wait for a table, and what shape their rows have."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from icestream.errors import StateError
from icestream.model.position import Lsn
from icestream.model.table import Profile, Relation
from icestream.state.database import Database
from icestream.state.pool import Row

# `claim_end` makes every cut a range of the primary key, so the cost does not grow with the length of the log.
_AFTER = """
WITH first AS (
    SELECT claim_end, start_offset
    FROM {schema}.log_index
    WHERE pipeline = %(pipeline)s AND table_name = %(table)s AND end_offset > %(offset)s
    ORDER BY end_offset
    LIMIT 1
), candidates AS (
    SELECT entry.*
    FROM {schema}.log_index AS entry, first
    WHERE entry.pipeline = %(pipeline)s AND entry.table_name = %(table)s
      AND entry.end_offset > %(offset)s AND entry.end_offset <= first.claim_end
    UNION ALL (
    SELECT entry.*
    FROM {schema}.log_index AS entry, first
    WHERE entry.pipeline = %(pipeline)s AND entry.table_name = %(table)s
      AND entry.end_offset > first.claim_end AND entry.end_offset <= first.start_offset + %(max_rows)s
      AND entry.claim_end <= first.start_offset + %(max_rows)s
    ORDER BY entry.end_offset
    LIMIT %(max_files)s)
), running AS (
    SELECT *, sum(byte_size) OVER (ORDER BY end_offset) AS bytes FROM candidates
), claims AS (
    SELECT *,
           max(bytes) OVER (PARTITION BY claim_end) AS claim_bytes,
           max(end_offset) OVER (PARTITION BY claim_end) = claim_end AS is_whole
    FROM running
)
SELECT table_name, start_offset, end_offset, s3_path, record_count, byte_size, flushable_lsn, claim_id::text,
       epoch::text, relation_version, profile, first_commit_at, created_at
FROM claims
WHERE claim_end = (SELECT claim_end FROM first) OR (is_whole AND claim_bytes <= %(max_bytes)s)
ORDER BY start_offset
"""
# A cursor of another epoch counts as none. Looks at one index row per table, not at all that wait.
_PENDING = """
SELECT seq.table_name,
       seq.next_offset - oldest.start_offset AS rows,
       seq.next_byte - oldest.start_byte AS bytes,
       oldest.created_at AS oldest_created_at,
       extract(epoch FROM now() - oldest.created_at)::float8 AS waiting_s,
       seq.next_offset AS end_offset
FROM {schema}.log_seq AS seq
JOIN {schema}.flushed_lsn AS flushed USING (pipeline)
LEFT JOIN {schema}.mat_cursor AS cursor
    ON cursor.pipeline = seq.pipeline AND cursor.table_name = seq.table_name
   AND cursor.group_name = %(group)s AND cursor.epoch = flushed.epoch
CROSS JOIN LATERAL (
    SELECT start_offset, start_byte, created_at
    FROM {schema}.log_index AS entry
    WHERE entry.pipeline = seq.pipeline AND entry.table_name = seq.table_name
      AND entry.end_offset > coalesce(cursor.last_offset, -1)
    ORDER BY entry.end_offset
    LIMIT 1
) AS oldest
WHERE seq.pipeline = %(pipeline)s AND seq.next_offset > coalesce(cursor.last_offset, -1)
ORDER BY seq.table_name
"""
_EXTENT = """
SELECT coalesce(oldest.start_offset, seq.next_offset) AS first_offset, seq.next_offset
FROM {schema}.log_seq AS seq
LEFT JOIN LATERAL (
    SELECT start_offset
    FROM {schema}.log_index AS entry
    WHERE entry.pipeline = seq.pipeline AND entry.table_name = seq.table_name
    ORDER BY entry.end_offset
    LIMIT 1
) AS oldest ON true
WHERE seq.pipeline = %(pipeline)s AND seq.table_name = %(table)s
"""
_RELATION = """
SELECT relation::text
FROM {schema}.relation_version
WHERE pipeline = %(pipeline)s AND table_name = %(table)s AND version = %(version)s
"""
_LATEST_RELATIONS = """
SELECT seq.table_name, shape.relation::text
FROM {schema}.log_seq AS seq
JOIN {schema}.relation_version AS shape
    ON shape.pipeline = seq.pipeline AND shape.table_name = seq.table_name AND shape.version = seq.relation_version
WHERE seq.pipeline = %(pipeline)s
"""


@dataclass(frozen=True)
class LogEntry:
    """One claimed file: rows [start_offset, end_offset) of the table's log."""

    table: str
    start_offset: int
    end_offset: int
    path: str  # relative to the staging root
    record_count: int
    byte_size: int
    position: Lsn  # end of the newest commit in it
    claim_id: str
    epoch: str
    relation_version: str
    profile: Profile
    first_commit_at: float  # seconds since 1970, by the source's clock
    created_at: datetime


@dataclass(frozen=True)
class PendingLog:
    """What waits for a table; `waiting_s` is the age of the oldest entry by the database's clock."""

    table: str
    rows: int
    bytes: int
    oldest_created_at: datetime
    waiting_s: float
    end_offset: int


@dataclass(frozen=True)
class LogExtent:
    """The part of a table's log that is still there: [first_offset, next_offset), empty if they are equal."""

    first_offset: int
    next_offset: int


class LogEntries:
    def __init__(self, db: Database, pipeline: str) -> None:
        self._db = db
        self._pipeline = pipeline

    def after(self, table: str, offset: int, *, max_rows: int, max_bytes: int, max_files: int = 2000) -> list[LogEntry]:
        """The next entries in log order: always the first claim, then as many whole claims as fit the budgets.

        `max_files` bounds what follows the first claim, however small its files are.
        """
        budget = {"offset": offset, "max_rows": max_rows, "max_bytes": max_bytes, "max_files": max_files}
        rows = self._db.fetch(_AFTER, {"pipeline": self._pipeline, "table": table, **budget})
        return [_entry(row) for row in rows]

    def pending(self, group: str) -> list[PendingLog]:
        """The tables that have something to do for `group`; cheap enough to ask several times a second."""
        rows = self._db.fetch(_PENDING, {"pipeline": self._pipeline, "group": group})
        return [PendingLog(table=row.pop("table_name"), **row) for row in rows]

    def extent(self, table: str) -> LogExtent:
        row = self._db.fetch_one(_EXTENT, {"pipeline": self._pipeline, "table": table})
        return LogExtent(**row) if row else LogExtent(0, 0)

    def relation(self, table: str, version: str) -> Relation:
        row = self._db.fetch_one(_RELATION, {"pipeline": self._pipeline, "table": table, "version": version})
        if row is None:
            raise StateError(f"the shape {version} of table {table} is not in the state of pipeline '{self._pipeline}'")
        return Relation.from_json(row["relation"])

    def latest_relations(self) -> dict[str, Relation]:
        """The shape of the newest claimed rows, by table; nothing for a table that had none in this epoch."""
        rows = self._db.fetch(_LATEST_RELATIONS, {"pipeline": self._pipeline})
        return {row["table_name"]: Relation.from_json(row["relation"]) for row in rows}


def _entry(row: Row) -> LogEntry:
    return LogEntry(
        table=row["table_name"],
        start_offset=row["start_offset"],
        end_offset=row["end_offset"],
        path=row["s3_path"],
        record_count=row["record_count"],
        byte_size=row["byte_size"],
        position=Lsn(row["flushable_lsn"]),
        claim_id=row["claim_id"],
        epoch=row["epoch"],
        relation_version=row["relation_version"],
        profile=Profile(**row["profile"]),
        first_commit_at=row["first_commit_at"].timestamp(),
        created_at=row["created_at"],
    )
