"""Which staged files nobody needs any more.

A file is given up in two steps, so that a crash leaks nothing: in one transaction its row moves from the index (or
from the intents) to `garbage`; then the file is deleted, then its garbage row. The row goes first, so a capture that
was paused cannot claim a file that is about to be deleted.
"""

from __future__ import annotations

from collections.abc import Iterable

from icestream.state.database import Database

# Passed: by every registered group in this epoch. Without any group nothing is. Nobody reads the log of a table that is
# removed, or parked for good: only a new copy, which does not need what was before it, brings it back. A table that may
# still be resumed keeps its log for a while.
_GIVE_UP_PASSED = """
WITH passed AS (
    SELECT seq.table_name, (
               SELECT min(CASE WHEN tables.state = 'removed' THEN seq.next_offset
                               WHEN tables.state = 'parked'
                                AND coalesce(tables.resumable_since, '-infinity')
                                    <= now() - %(parked_keep_s)s * interval '1 second' THEN seq.next_offset
                               ELSE coalesce(cursor.last_offset, -1) END)
               FROM {schema}.log_group AS reader
               LEFT JOIN {schema}.mat_cursor AS cursor
                   ON cursor.pipeline = reader.pipeline AND cursor.group_name = reader.group_name
                  AND cursor.table_name = seq.table_name AND cursor.epoch = flushed.epoch
               LEFT JOIN {schema}.tables AS tables
                   ON tables.pipeline = reader.pipeline AND tables.group_name = reader.group_name
                  AND tables.table_name = seq.table_name
               WHERE reader.pipeline = seq.pipeline
           ) AS up_to
    FROM {schema}.log_seq AS seq
    JOIN {schema}.flushed_lsn AS flushed USING (pipeline)
    WHERE seq.pipeline = %(pipeline)s
), given_up AS (
    DELETE FROM {schema}.log_index AS entry
    USING passed
    WHERE entry.pipeline = %(pipeline)s AND entry.table_name = passed.table_name
      AND entry.claim_end <= passed.up_to AND entry.end_offset <= passed.up_to
      AND entry.created_at <= now() - %(keep_s)s * interval '1 second'
    RETURNING entry.s3_path
)
INSERT INTO {schema}.garbage (path, pipeline)
SELECT s3_path, %(pipeline)s FROM given_up
ON CONFLICT (path) DO NOTHING
"""
# A flush announces its files after the claim before it, however long it then takes: what is newer may still be claimed.
_GIVE_UP_INTENTS = """
WITH given_up AS (
    DELETE FROM {schema}.staged_intent AS intent
    USING {schema}.flushed_lsn AS flushed
    WHERE intent.pipeline = %(pipeline)s AND flushed.pipeline = intent.pipeline
      AND intent.created_at < flushed.updated_at
      AND intent.created_at <= now() - %(grace_s)s * interval '1 second'
    RETURNING intent.path
)
INSERT INTO {schema}.garbage (path, pipeline)
SELECT path, %(pipeline)s FROM given_up
ON CONFLICT (path) DO NOTHING
"""
_GARBAGE = """
SELECT path FROM {schema}.garbage
WHERE pipeline = %(pipeline)s AND NOT path = ANY(%(leave_out)s)
ORDER BY since, path
LIMIT %(limit)s
"""
_FORGET = "DELETE FROM {schema}.garbage WHERE pipeline = %(pipeline)s AND path = ANY(%(paths)s)"


class Retention:
    """Called in this order, by any number of workers: give up, then delete the files of `garbage`, then `forget`."""

    def __init__(self, db: Database, pipeline: str) -> None:
        self._db = db
        self._pipeline = pipeline

    def give_up_passed(self, keep_s: float, parked_keep_s: float = 0) -> int:
        """Moves the entries that every group has passed, and that are older than `keep_s`, to the garbage.

        A table that is parked and may be resumed passes nothing for `parked_keep_s`, then everything.
        """
        values = {"pipeline": self._pipeline, "keep_s": keep_s, "parked_keep_s": parked_keep_s}
        return self._db.execute(_GIVE_UP_PASSED, values)

    def give_up_intents(self, grace_s: float) -> int:
        """Moves uploads that were announced longer ago than `grace_s`, and before the newest claim, to the garbage."""
        return self._db.execute(_GIVE_UP_INTENTS, {"pipeline": self._pipeline, "grace_s": grace_s})

    def garbage(self, limit: int = 1000, *, leave_out: Iterable[str] = ()) -> list[str]:
        """Paths, relative to the staging root, of files to delete; some may be gone already."""
        values = {"pipeline": self._pipeline, "limit": limit, "leave_out": list(leave_out)}
        rows = self._db.fetch(_GARBAGE, values)
        return [row["path"] for row in rows]

    def forget(self, paths: Iterable[str]) -> None:
        """The files are deleted. May be repeated."""
        self._db.execute(_FORGET, {"pipeline": self._pipeline, "paths": list(paths)})
