"""Which staged files, and which dead letters, nobody needs any more.

A file is given up in two steps, so that a crash leaks nothing: in one transaction its row moves from the index (or
from the intents) to `garbage`; then the file is deleted, then its garbage row. The row goes first, so a capture that
was paused cannot claim a file that is about to be deleted.

A letter goes when it is in Iceberg and whatever it was found in is not read again, so that it does not come back; only
its number stays.
"""

from __future__ import annotations

from collections.abc import Iterable

from icestream.state.database import Database
from icestream.state.dead_letters import NO_NEW_LETTERS

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
# A group that has no use for the table does not move its letters, but somebody has to have moved them. Letters of the
# log come again with the batch, letters of a copy as long as that may be completed, also without its snapshot.
_MOVED_LETTERS = """
SELECT letter.id
FROM {schema}.dead_letter AS letter
WHERE letter.pipeline = %(pipeline)s
  AND EXISTS (
      SELECT FROM {schema}.letter_move AS move
      JOIN {schema}.log_group AS reader USING (pipeline, group_name)
      WHERE move.pipeline = letter.pipeline AND move.letter_id = letter.id AND move.moved_at IS NOT NULL)
  AND NOT EXISTS (
      SELECT FROM {schema}.log_group AS reader
      JOIN {schema}.tables AS tables USING (pipeline, group_name)
      LEFT JOIN {schema}.letter_move AS move
          ON move.pipeline = letter.pipeline AND move.letter_id = letter.id AND move.group_name = reader.group_name
      WHERE reader.pipeline = letter.pipeline AND tables.table_name = letter.table_name
        AND tables.state <> 'removed' AND move.moved_at IS NULL)
  AND CASE WHEN letter.log_offset >= 0 THEN NOT EXISTS (
      SELECT FROM {schema}.log_index AS entry
      WHERE entry.pipeline = letter.pipeline AND entry.table_name = letter.table_name AND entry.epoch = letter.epoch
        AND entry.start_offset <= letter.log_offset)
  ELSE NOT EXISTS (
      SELECT FROM {schema}.tables AS tables
      LEFT JOIN {schema}.snapshot_progress AS copy USING (pipeline, group_name, table_name)
      WHERE tables.pipeline = letter.pipeline AND tables.table_name = letter.table_name AND tables.state <> 'removed'
        AND (copy.position <= letter.position
             OR (tables.state = 'copying' AND tables.snapshot_lsn <= letter.position)))
  END
LIMIT %(most)s
"""
_FORGET_LETTERS = """
WITH gone AS (
    DELETE FROM {schema}.dead_letter
    WHERE pipeline = %(pipeline)s AND id = ANY(%(letters)s)
    RETURNING id, table_name, epoch, log_offset, position
), moves AS (
    DELETE FROM {schema}.letter_move USING gone WHERE pipeline = %(pipeline)s AND letter_id = gone.id
)
INSERT INTO {schema}.moved_letters AS known (pipeline, table_name, epoch, letters, last_offset, last_copy)
SELECT %(pipeline)s, table_name, epoch, count(*),
       coalesce(max(log_offset) FILTER (WHERE log_offset >= 0), -1),
       coalesce(max(position) FILTER (WHERE log_offset < 0), -1)
FROM gone
GROUP BY table_name, epoch
ON CONFLICT (pipeline, table_name, epoch) DO UPDATE
SET letters = known.letters + excluded.letters,
    last_offset = greatest(known.last_offset, excluded.last_offset),
    last_copy = greatest(known.last_copy, excluded.last_copy)
"""


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

    def forget_letters(self, most: int = 10_000) -> int:
        """Removes dead letters that every group has brought to Iceberg and that can't come again; gives their number.

        They stay in `DeadLetters.counts`.
        """
        found = self._db.fetch(_MOVED_LETTERS, {"pipeline": self._pipeline, "most": most})
        if found:
            values = {"pipeline": self._pipeline, "letters": [row["id"] for row in found]}
            with self._db.transaction() as tx:
                tx.execute(NO_NEW_LETTERS, values)
                tx.execute(_FORGET_LETTERS, values)
        return len(found)
