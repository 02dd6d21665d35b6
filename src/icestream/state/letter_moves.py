"""Which dead letters have been brought to Iceberg. A group has at most one move that is begun and not finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icestream.model.ids import new_id
from icestream.state.database import Database, Transaction
from icestream.state.dead_letters import DeadLetter, dead_letter

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('icestream letters ' || %(pipeline)s || '/' || %(group)s, 0))"
_OPEN = """
SELECT move_id::text, namespace
FROM {schema}.letter_move
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND moved_at IS NULL
LIMIT 1
"""
_BEGIN = """
INSERT INTO {schema}.letter_move (pipeline, group_name, letter_id, move_id, namespace)
SELECT %(pipeline)s, %(group)s, id, %(move_id)s, %(namespace)s
FROM {schema}.dead_letter AS letter
WHERE pipeline = %(pipeline)s AND table_name = ANY(%(tables)s)
  AND NOT EXISTS (SELECT FROM {schema}.letter_move AS move
                  WHERE (move.pipeline, move.group_name, move.letter_id) = (%(pipeline)s, %(group)s, letter.id))
ORDER BY created_at, id
LIMIT %(limit)s
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


@dataclass(frozen=True)
class Move:
    id: str
    namespace: str
    letters: Sequence[DeadLetter]


class LetterMoves:
    def __init__(self, db: Database, pipeline: str, group: str) -> None:
        self._db = db
        self._scope = {"pipeline": pipeline, "group": group}

    def begin(self, tables: Mapping[str, Sequence[str]], *, most: int = _MOST) -> Move | None:
        """The move that is under way, else a new one; None if every letter is moved. May be repeated.

        `tables` has the tables of each namespace. Once it returns, the same letters are given until `finish`.
        """
        with self._db.transaction() as tx:
            tx.execute(_LOCK, self._scope)
            found = tx.fetch_one(_OPEN, self._scope)
            if found is not None:
                return self._move(tx, found["move_id"], found["namespace"])
            for namespace, names in tables.items():
                move_id = new_id()
                values = {"move_id": move_id, "namespace": namespace, "tables": list(names), "limit": most}
                if tx.execute(_BEGIN, {**self._scope, **values}):
                    return self._move(tx, move_id, namespace)
        return None

    def is_open(self, move: Move) -> bool:
        found = self._db.fetch(_OPEN, self._scope)
        return bool(found) and found[0]["move_id"] == move.id

    def finish(self, move: Move) -> None:
        """The letters are in Iceberg. May be repeated."""
        self._db.execute(_FINISH, {**self._scope, "move_id": move.id})

    def _move(self, tx: Transaction, move_id: str, namespace: str) -> Move:
        rows = tx.fetch(_LETTERS, {**self._scope, "move_id": move_id})
        return Move(move_id, namespace, [dead_letter(row) for row in rows])
