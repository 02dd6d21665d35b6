"""What Iceberg cannot hold, with its key and the reason, until someone replays it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

import msgspec

from icestream.model.position import Lsn
from icestream.state.database import Database
from icestream.state.pool import Row

_BATCH = 1000
_ADD = """
INSERT INTO {schema}.dead_letter
    (pipeline, id, table_name, epoch, log_offset, position, column_name, key, value, reason)
SELECT %(pipeline)s, letter.*
FROM jsonb_to_recordset(%(letters)s::jsonb) AS letter (
    id text, table_name text, epoch uuid, log_offset bigint, position bigint, column_name text, key jsonb, value text,
    reason text)
ON CONFLICT (id) DO NOTHING
"""
_COUNTS = """
SELECT table_name, count(*) AS letters
FROM {schema}.dead_letter
WHERE pipeline = %(pipeline)s
GROUP BY table_name
ORDER BY table_name
"""
_NEWEST = """
SELECT table_name, epoch::text, log_offset, position, column_name, key, value, reason, created_at
FROM {schema}.dead_letter
WHERE pipeline = %(pipeline)s AND (%(table)s::text IS NULL OR table_name = %(table)s)
ORDER BY created_at DESC, id
LIMIT %(limit)s
"""


@dataclass(frozen=True)
class DeadLetter:
    table: str
    epoch: str
    offset: int  # of the row in the table's log; negative for a row of the first copy, which its key tells apart
    position: Lsn
    column: str | None  # None: the whole row
    key: Mapping[str, str | None]
    value: str | None
    reason: str
    created_at: datetime | None = None  # set by the database

    @property
    def id(self) -> str:
        """The same for the same row and column, so that a batch that is redone adds nothing."""
        origin = msgspec.json.encode((self.epoch, self.table, self.offset, self.column))
        if self.offset < 0:
            origin += msgspec.json.encode(dict(self.key), order="sorted")
        return hashlib.sha256(origin).hexdigest()[:32]


LOST = "the value was not sent, as it did not change, and no row in the table holds it"


def unfit_reason(value: str | None) -> str:
    return "the key has no value" if value is None else "the Iceberg column can't hold this value"


class DeadLetters:
    def __init__(self, db: Database, pipeline: str) -> None:
        self._db = db
        self._pipeline = pipeline

    def add(self, letters: Iterable[DeadLetter]) -> int:
        """Stores the letters that are not there yet and gives their number. May be repeated."""
        rest = iter(letters)
        added = 0
        while batch := list(islice(rest, _BATCH)):
            added += self._add(batch)
        return added

    def counts(self) -> dict[str, int]:
        rows = self._db.fetch(_COUNTS, {"pipeline": self._pipeline})
        return {row["table_name"]: row["letters"] for row in rows}

    def newest(self, table: str | None = None, *, limit: int = 100) -> list[DeadLetter]:
        rows = self._db.fetch(_NEWEST, {"pipeline": self._pipeline, "table": table, "limit": limit})
        return [dead_letter(row) for row in rows]

    def _add(self, letters: Iterable[DeadLetter]) -> int:
        encoded = msgspec.json.encode([_values(letter) for letter in letters]).decode()
        return self._db.execute(_ADD, {"pipeline": self._pipeline, "letters": encoded})


def _values(letter: DeadLetter) -> dict[str, object]:
    return {
        "id": letter.id,
        "table_name": letter.table,
        "epoch": letter.epoch,
        "log_offset": letter.offset,
        "position": int(letter.position),
        "column_name": letter.column,
        "key": dict(letter.key),
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
    )
