"""How far first copies have come: which ranges there are, and which of them are written to which files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from icestream.model.copying import CopyRange, WrittenFile
from icestream.model.position import Lsn
from icestream.state.database import Database
from icestream.state.pool import Row

# Two workers may plan at once, from other sizes of the table: the ranges of both together would overlap.
_LOCK = """
SELECT FROM {schema}.tables
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND table_name = %(table)s
FOR UPDATE
"""
_RANGES = """
SELECT position, range_number, relation_oid, start_page, end_page, pages, files::text
FROM {schema}.snapshot_progress
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND table_name = %(table)s
ORDER BY position, range_number
"""
_PLAN = """
INSERT INTO {schema}.snapshot_progress
    (pipeline, group_name, table_name, position, range_number, relation_oid, start_page, end_page, pages)
SELECT %(pipeline)s, %(group)s, %(table)s, %(position)s, planned.*
FROM jsonb_to_recordset(%(ranges)s::jsonb) AS planned (
    number int, oid bigint, start bigint, "end" bigint, pages bigint)
"""
_NOTE = """
WITH unwritten AS (
    SELECT range_number FROM {schema}.snapshot_progress
    WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND table_name = %(table)s
      AND position = %(position)s AND range_number BETWEEN %(first)s AND %(last)s AND done_at IS NULL
    FOR UPDATE
)
UPDATE {schema}.snapshot_progress
SET done_at = now(),
    files = CASE range_number WHEN %(first)s THEN %(files)s::jsonb ELSE '[]' END,
    row_count = CASE range_number WHEN %(first)s THEN %(rows)s ELSE 0 END,
    byte_size = CASE range_number WHEN %(first)s THEN %(size)s ELSE 0 END
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND table_name = %(table)s
  AND position = %(position)s AND range_number BETWEEN %(first)s AND %(last)s
  AND (SELECT count(*) FROM unwritten) = %(last)s - %(first)s + 1
"""
_FORGET = """
DELETE FROM {schema}.snapshot_progress
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND table_name = %(table)s AND position = %(position)s
"""
_STANDINGS = """
SELECT table_name, sum(pages)::bigint AS pages,
       coalesce(sum(pages) FILTER (WHERE done_at IS NOT NULL), 0)::bigint AS pages_done,
       count(*) AS ranges, count(done_at) AS ranges_done,
       sum(row_count)::bigint AS rows, sum(byte_size)::bigint AS bytes,
       min(planned_at) AS began, extract(epoch FROM now() - min(planned_at))::float8 AS seconds
FROM {schema}.snapshot_progress
JOIN {schema}.tables USING (pipeline, group_name, table_name)
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND state = 'copying' AND position = snapshot_lsn
GROUP BY table_name
"""


@dataclass(frozen=True)
class CopyStanding:
    """A copy that is under way; `seconds` since it was planned."""

    pages: int
    pages_done: int
    ranges: int
    ranges_done: int
    rows: int
    bytes: int  # of the files
    began: datetime
    seconds: float

    @property
    def ratio(self) -> float:
        """How much of it is done, by pages; an empty table has one range and no page."""
        return self.pages_done / self.pages if self.pages else self.ranges_done / max(1, self.ranges)

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def left_seconds(self) -> float | None:
        """None before the first range is written."""
        return self.seconds * (1 - self.ratio) / self.ratio if self.ratio > 0 else None

    def as_fields(self) -> dict[str, object]:
        """For the log."""
        left = self.left_seconds
        return {
            "rows": self.rows,
            "bytes": self.bytes,
            "percent": round(100 * self.ratio, 1),
            "rows_per_s": round(self.rows_per_second),
            "left_s": None if left is None else round(left),
        }


def together(standings: Iterable[CopyStanding]) -> CopyStanding | None:
    """All copies as one that began with the first of them; None without any."""
    some = list(standings)
    if not some:
        return None
    counts = ("pages", "pages_done", "ranges", "ranges_done", "rows", "bytes")
    sums = {name: sum(getattr(standing, name) for standing in some) for name in counts}
    return CopyStanding(**sums, began=min(one.began for one in some), seconds=max(one.seconds for one in some))


class CopyProgress:
    """The copies of one group. A copy is named by its table and the position of its snapshot."""

    def __init__(self, db: Database, pipeline: str, group: str) -> None:
        self._db = db
        self._scope = {"pipeline": pipeline, "group": group}

    def plan(self, table: str, position: Lsn, ranges: Sequence[CopyRange]) -> list[CopyRange]:
        """Stores the ranges, unless the copy is planned already; gives those that are stored. May be repeated."""
        encoded = msgspec.json.encode(ranges).decode()
        values = {**self._scope, "table": table, "position": int(position)}
        with self._db.transaction() as tx:
            tx.fetch(_LOCK, values)
            if not any(row["position"] == position for row in tx.fetch(_RANGES, values)):
                tx.execute(_PLAN, {**values, "ranges": encoded})
            return [_range(row) for row in tx.fetch(_RANGES, values) if row["position"] == position]

    def note(self, table: str, position: Lsn, numbers: range, files: Sequence[WrittenFile]) -> bool:
        """These ranges are written, together; the first of them is noted with the files of all.

        False, and these files count for nothing, if one of them was noted before or the copy is forgotten.
        """
        values = {
            "table": table,
            "position": int(position),
            "first": numbers[0],
            "last": numbers[-1],
            "files": msgspec.json.encode(files).decode(),
            "rows": sum(file.records for file in files),
            "size": sum(file.size for file in files),
        }
        return self._db.execute(_NOTE, {**self._scope, **values}) > 0

    def copies(self, table: str) -> dict[Lsn, list[CopyRange]]:
        """All copies that were begun and neither completed nor given up, by position."""
        found: dict[Lsn, list[CopyRange]] = {}
        for row in self._db.fetch(_RANGES, {**self._scope, "table": table}):
            found.setdefault(Lsn(row["position"]), []).append(_range(row))
        return found

    def forget(self, table: str, position: Lsn) -> None:
        """The copy is completed or given up; who still writes at it can't note anything any more."""
        self._db.execute(_FORGET, {**self._scope, "table": table, "position": int(position)})

    def standings(self) -> dict[str, CopyStanding]:
        """By table, of the copies that are under way now."""
        return {row["table_name"]: _standing(row) for row in self._db.fetch(_STANDINGS, self._scope)}


def _range(row: Row) -> CopyRange:
    files = None if row["files"] is None else msgspec.json.decode(row["files"], type=tuple[WrittenFile, ...])
    return CopyRange(row["range_number"], row["relation_oid"], row["start_page"], row["end_page"], row["pages"], files)


def _standing(row: Row) -> CopyStanding:
    names = ("pages", "pages_done", "ranges", "ranges_done", "rows", "bytes", "began", "seconds")
    return CopyStanding(**{name: row[name] for name in names})
