"""What Iceberg cannot hold, with its key and the reason, until it is in the Iceberg table for that, for every group."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from icestream.model.letters import LONGEST_KEY_PART, LONGEST_VALUE
from icestream.model.position import Lsn
from icestream.state.database import Database
from icestream.state.pool import Row

_BATCH = 1000
_BATCH_CHARACTERS = 8 * 1024**2
# Letters are added, and moves begun, while none are forgotten.
HOLD_LETTERS = "SELECT pg_advisory_xact_lock_shared(hashtextextended('icestream letters ' || %(pipeline)s, 0))"
NO_NEW_LETTERS = "SELECT pg_advisory_xact_lock(hashtextextended('icestream letters ' || %(pipeline)s, 0))"
# Arrays of texts: one document with all letters would be more than a jsonb may hold.
_ADD = """
INSERT INTO {schema}.dead_letter
    (pipeline, id, table_name, epoch, log_offset, position, column_name, key, value, reason)
SELECT %(pipeline)s, id, table_name, epoch, log_offset, position, column_name, key::jsonb, value, reason
FROM unnest(
    %(id)s::text[], %(table_name)s::text[], %(epoch)s::uuid[], %(log_offset)s::bigint[], %(position)s::bigint[],
    %(column_name)s::text[], %(key)s::text[], %(value)s::text[], %(reason)s::text[]
) AS letter (id, table_name, epoch, log_offset, position, column_name, key, value, reason)
WHERE NOT EXISTS (
    SELECT FROM {schema}.moved_letters AS moved
    WHERE (moved.pipeline, moved.table_name, moved.epoch) = (%(pipeline)s, letter.table_name, letter.epoch)
      AND CASE WHEN letter.log_offset < 0 THEN letter.position <= moved.last_copy
               ELSE letter.log_offset <= moved.last_offset END)
ON CONFLICT (id) DO NOTHING
"""
_COUNTS = """
SELECT table_name, sum(letters)::bigint AS letters
FROM (
    SELECT table_name, count(*) AS letters FROM {schema}.dead_letter WHERE pipeline = %(pipeline)s GROUP BY table_name
    UNION ALL
    SELECT table_name, letters FROM {schema}.moved_letters WHERE pipeline = %(pipeline)s
) AS part
GROUP BY table_name
ORDER BY table_name
"""
_NEWEST = """
SELECT id, table_name, epoch::text, log_offset, position, column_name, key, value, reason, created_at
FROM {schema}.dead_letter
WHERE pipeline = %(pipeline)s AND (%(table)s::text IS NULL OR table_name = %(table)s)
ORDER BY created_at DESC, id
LIMIT %(limit)s
"""


@dataclass(frozen=True)
class DeadLetter:
    table: str
    epoch: str
    offset: int  # of the row in the table's log; negative for a row of a copy
    position: Lsn
    column: str | None  # None: the whole row
    key: Mapping[str, str | None]
    value: str | None
    reason: str
    place: str = ""  # of a copied row in the source: there may be no key that tells it apart. Not stored
    created_at: datetime | None = None  # set by the database
    stored_id: str | None = None  # likewise

    @property
    def id(self) -> str:
        """The same for the same row and column, so that a batch that is redone adds nothing.

        Every copy has letters of its own: another one finds other values.
        """
        if self.stored_id is not None:
            return self.stored_id
        origin = msgspec.json.encode((self.epoch, self.table, self.offset, self.column))
        if self.offset < 0:
            origin += msgspec.json.encode((int(self.position), self.place, dict(self.key)), order="sorted")
        return hashlib.sha256(origin).hexdigest()[:32]


LOST = "the value was not sent, as it did not change, and no row in the table holds it"


def unfit_reason(value: str | None) -> str:
    return "the key has no value" if value is None else "the Iceberg column can't hold this value"


class DeadLetters:
    def __init__(self, db: Database, pipeline: str) -> None:
        self._db = db
        self._pipeline = pipeline

    def add(self, letters: Iterable[DeadLetter]) -> int:
        """Stores the letters that are new and gives their number. May be repeated; they are durable when it returns."""
        return sum(map(self._add, batches(map(_bounded, letters))))

    def counts(self) -> dict[str, int]:
        """By table, of all letters there ever were."""
        rows = self._db.fetch(_COUNTS, {"pipeline": self._pipeline})
        return {row["table_name"]: row["letters"] for row in rows}

    def newest(self, table: str | None = None, *, limit: int = 100) -> list[DeadLetter]:
        """Of those that `Retention.forget_letters` has left; the others are in Iceberg only."""
        rows = self._db.fetch(_NEWEST, {"pipeline": self._pipeline, "table": table, "limit": limit})
        return [dead_letter(row) for row in rows]

    def _add(self, letters: Sequence[DeadLetter]) -> int:
        rows = [_values(letter) for letter in letters]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        values = {"pipeline": self._pipeline, **columns}
        with self._db.transaction() as tx:
            tx.execute(HOLD_LETTERS, values)
            return tx.execute(_ADD, values)


def batches(letters: Iterable[DeadLetter]) -> Iterator[list[DeadLetter]]:
    """Cut by number and by size; only what is larger by itself is in a batch that is larger, alone."""
    batch, size = list[DeadLetter](), 0
    for letter in letters:
        own = _size(letter)
        if batch and (len(batch) == _BATCH or size + own > _BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(letter)
        size += own
    if batch:
        yield batch


def _size(letter: DeadLetter) -> int:
    return len(letter.value or "") + sum(len(part or "") for part in letter.key.values())


def _bounded(letter: DeadLetter) -> DeadLetter:
    """Under the id that it has as a whole."""
    if len(letter.value or "") > LONGEST_VALUE:
        kept = f"only the first {LONGEST_VALUE:,} characters of the value are kept"
        letter = replace(letter, value=_cut(letter.value, LONGEST_VALUE), reason=f"{letter.reason}; {kept}")
    if any(len(part or "") > LONGEST_KEY_PART for part in letter.key.values()):
        key = {name: _cut(part, LONGEST_KEY_PART) for name, part in letter.key.items()}
        kept = f"only the first {LONGEST_KEY_PART:,} characters of each part of the key are kept"
        letter = replace(letter, key=key, reason=f"{letter.reason}; {kept}", stored_id=letter.id)
    return letter


def _cut(text: str | None, longest: int) -> str | None:
    return None if text is None else text[:longest]


def _values(letter: DeadLetter) -> dict[str, object]:
    return {
        "id": letter.id,
        "table_name": letter.table,
        "epoch": letter.epoch,
        "log_offset": letter.offset,
        "position": int(letter.position),
        "column_name": letter.column,
        "key": msgspec.json.encode(dict(letter.key)).decode(),
        "value": letter.value,
        "reason": letter.reason,
    }


def dead_letter(row: Row) -> DeadLetter:
    return DeadLetter(
        table=row["table_name"],
        epoch=row["epoch"],
        offset=row["log_offset"],
        position=Lsn(row["position"]),
        column=row["column_name"],
        key=row["key"],
        value=row["value"],
        reason=row["reason"],
        created_at=row["created_at"],
        stored_id=row["id"],
    )
