"""Which dead letters have been brought to Iceberg. A group has one unfinished move for each namespace at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icestream.model.ids import new_id
from icestream.state.database import Database, Transaction
from icestream.state.dead_letters import HOLD_LETTERS, DeadLetter, dead_letter

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('icestream move ' || %(pipeline)s || '/' || %(group)s, 0))"
_UNFINISHED = """
SELECT DISTINCT namespace
FROM {schema}.letter_move
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND moved_at IS NULL
ORDER BY namespace
"""
_OPEN = """
SELECT move_id::text
FROM {schema}.letter_move
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND namespace = %(namespace)s AND moved_at IS NULL
LIMIT 1
"""
# As many as come before the size is reached: one at least.
_BEGIN = """
WITH waiting AS (
    SELECT id, created_at, octet_length(key::text) + octet_length(coalesce(value, '')) AS size
    FROM {schema}.dead_letter AS letter
    WHERE pipeline = %(pipeline)s AND table_name = ANY(%(tables)s)
      AND NOT EXISTS (SELECT FROM {schema}.letter_move AS move
                      WHERE (move.pipeline, move.group_name, move.letter_id) = (%(pipeline)s, %(group)s, letter.id))
    ORDER BY created_at, id
    LIMIT %(most)s
), placed AS (
    SELECT id, sum(size) OVER (ORDER BY created_at, id) - size AS size_before FROM waiting
)
INSERT INTO {schema}.letter_move (pipeline, group_name, letter_id, move_id, namespace)
SELECT %(pipeline)s, %(group)s, id, %(move_id)s, %(namespace)s
FROM placed
WHERE size_before < %(most_bytes)s
"""
_LETTERS = """
SELECT letter.id, table_name, epoch::text, log_offset, position, column_name, key, value, reason, created_at
FROM {schema}.letter_move AS move
JOIN {schema}.dead_letter AS letter ON letter.id = move.letter_id
WHERE move.pipeline = %(pipeline)s AND move.group_name = %(group)s AND move.move_id = %(move_id)s
  AND move.moved_at IS NULL
ORDER BY created_at, letter.id
"""
_FINISH = """
UPDATE {schema}.letter_move SET moved_at = now()
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND move_id = %(move_id)s AND moved_at IS NULL
"""
_MOST = 5000
_MOST_BYTES = 16 * 1024**2


@dataclass(frozen=True)
class Move:
    id: str
    namespace: str
    letters: Sequence[DeadLetter]


class LetterMoves:
    def __init__(self, db: Database, pipeline: str, group: str) -> None:
        self._db = db
        self._scope = {"pipeline": pipeline, "group": group}

    def unfinished(self) -> list[str]:
        """The namespaces with a move that is begun and not finished."""
        return [row["namespace"] for row in self._db.fetch(_UNFINISHED, self._scope)]

    def begin(
        self, namespace: str, tables: Sequence[str], *, most: int = _MOST, most_bytes: int = _MOST_BYTES
    ) -> Move | None:
        """The namespace's move that is under way, else a new one; None if every letter is moved. May be repeated.

        `tables`: those of the namespace. Once it returns, the same letters are given until `finish`.
        """
        values = {**self._scope, "namespace": namespace, "tables": list(tables), "most": most, "most_bytes": most_bytes}
        with self._db.transaction() as tx:
            tx.execute(HOLD_LETTERS, values)
            tx.execute(_LOCK, values)
            found = tx.fetch_one(_OPEN, values)
            move_id = found["move_id"] if found else new_id()
            if not found and not tx.execute(_BEGIN, {**values, "move_id": move_id}):
                return None
            return self._move(tx, move_id, namespace)

    def is_open(self, move: Move) -> bool:
        found = self._db.fetch_one(_OPEN, {**self._scope, "namespace": move.namespace})
        return found is not None and found["move_id"] == move.id

    def finish(self, move: Move) -> None:
        """The letters are in Iceberg. May be repeated."""
        self._db.execute(_FINISH, {**self._scope, "move_id": move.id})

    def _move(self, tx: Transaction, move_id: str, namespace: str) -> Move:
        rows = tx.fetch(_LETTERS, {**self._scope, "move_id": move_id})
        return Move(move_id, namespace, [dead_letter(row) for row in rows])
