"""What was last seen of the source's tables, beside their rows: where these lie, and which columns they have.

Whoever finds something else notes that, together with what follows from it. Several may look at once; the one that
looked last, and builds on what is noted, is believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from icestream.model.footprint import Footprint
from icestream.model.position import Lsn
from icestream.model.table import Relation
from icestream.state.database import Database, Transaction
from icestream.state.pool import Row
from icestream.state.table_rows import RESYNC_HINT

_ALL = """
SELECT table_name, pg_oid, number, footprint::text, relation::text, shape_lsn, earlier::text
FROM {schema}.sighting
WHERE pipeline = %(pipeline)s
"""
_ADD = """
INSERT INTO {schema}.sighting (pipeline, table_name, pg_oid, footprint, relation, shape_lsn)
VALUES (%(pipeline)s, %(table)s, %(pg_oid)s, %(footprint)s, %(relation)s, %(shape_lsn)s)
ON CONFLICT (pipeline, table_name) DO NOTHING
"""
_REPLACE = """
UPDATE {schema}.sighting
SET pg_oid = %(pg_oid)s, footprint = %(footprint)s, relation = %(relation)s, shape_lsn = %(shape_lsn)s,
    number = number + 1,
    earlier = CASE
        WHEN pg_oid <> %(pg_oid)s THEN NULL
        WHEN shape_lsn < %(shape_lsn)s
         AND shape_lsn <= (SELECT lsn FROM {schema}.flushed_lsn WHERE pipeline = %(pipeline)s) THEN relation
        ELSE earlier
    END
WHERE pipeline = %(pipeline)s AND table_name = %(table)s AND number = %(number)s
"""
# Tables that wait for a copy, too: a snapshot that was made before the look is not what they need.
_DEMAND_COPY = """
UPDATE {schema}.tables
SET state = 'pending', reason = %(reason)s, hint = NULL, snapshot_name = NULL, snapshot_complete = false,
    requested_lsn = greatest(requested_lsn, snapshot_lsn, %(position)s), updated_at = now()
WHERE pipeline = %(pipeline)s AND table_name = %(table)s AND pg_oid = %(pg_oid)s
  AND state IN ('pending', 'copying', 'live') AND NOT (target ->> 'skip_snapshot')::boolean
RETURNING group_name
"""
_PARK_WITHOUT_COPY = """
UPDATE {schema}.tables
SET state = 'parked', reason = %(reason)s || '; its rows are not to be copied', hint = %(hint)s, updated_at = now()
WHERE pipeline = %(pipeline)s AND table_name = %(table)s AND pg_oid = %(pg_oid)s
  AND state IN ('pending', 'live') AND (target ->> 'skip_snapshot')::boolean
RETURNING group_name
"""
_GIVE_UP_LOG = """
UPDATE {schema}.tables
SET resumable_since = NULL, reason = reason || '; ' || %(reason)s, hint = %(hint)s, updated_at = now()
WHERE pipeline = %(pipeline)s AND table_name = %(table)s AND pg_oid = %(pg_oid)s
  AND state = 'parked' AND resumable_since IS NOT NULL
"""
_LOOKED = """
INSERT INTO {schema}.watch AS stored (pipeline, lsn) VALUES (%(pipeline)s, %(position)s)
ON CONFLICT (pipeline) DO UPDATE SET lsn = excluded.lsn, looked_at = now()
"""
_LAST_LOOK = "SELECT lsn, looked_at FROM {schema}.watch WHERE pipeline = %(pipeline)s"
# Columns that a table may not have yet: nothing that was seen or copied since tells of them.
_UNSETTLED = """
SELECT sighting.table_name, sighting.relation::text, sighting.shape_lsn
FROM {schema}.sighting
JOIN {schema}.flushed_lsn AS flushed USING (pipeline)
JOIN {schema}.mat_cursor AS cursor
    ON cursor.pipeline = sighting.pipeline AND cursor.table_name = sighting.table_name
   AND cursor.group_name = %(group)s AND cursor.epoch = flushed.epoch
WHERE sighting.pipeline = %(pipeline)s AND sighting.relation IS NOT NULL AND flushed.lsn >= sighting.shape_lsn
  AND sighting.shape_lsn > greatest(cursor.position, cursor.shape_lsn)
"""
_SETTLE = """
UPDATE {schema}.mat_cursor
SET shape_lsn = greatest(shape_lsn, %(position)s)
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND table_name = %(table)s
"""


@dataclass(frozen=True)
class Sighting:
    table: str
    pg_oid: int
    footprint: Footprint
    relation: Relation | None  # None: its columns are not fit to be followed yet
    shape_position: Lsn  # where the source was after its columns were seen
    number: int = 0  # 0: not noted yet
    earlier: Relation | None = None  # its columns before those, seen when the log had come that far

    def relation_at(self, position: Lsn) -> Relation | None:
        """Columns that the table had when the stream came to `position`, or before; None if nothing was seen then."""
        return self.relation if self.shape_position <= position else self.earlier


@dataclass(frozen=True)
class SeenShape:
    """Columns that the source had at `position`, whether or not a row tells of them."""

    relation: Relation
    position: Lsn


@dataclass(frozen=True)
class Demanded:
    """What became of a table whose rows are others now, by group."""

    copied: tuple[str, ...]
    parked: tuple[str, ...]


class Sightings:
    def __init__(self, db: Database, pipeline: str) -> None:
        self._db = db
        self._pipeline = pipeline

    def all(self) -> dict[str, Sighting]:
        """By table."""
        rows = self._db.fetch(_ALL, {"pipeline": self._pipeline})
        return {row["table_name"]: _sighting(row) for row in rows}

    def note(self, now: Sighting) -> bool:
        """`now.number` is that of the sighting it replaces. False if somebody else has noted another one since."""
        with self._db.transaction() as tx:
            return self._note(tx, now)

    def demand_copy(self, now: Sighting, position: Lsn, reason: str) -> Demanded | None:
        """Notes it, and asks for a copy that is cut after `position`: all or nothing. None as `note` gives False.

        A table that has no copy by its settings is parked, and one that is parked already can't be resumed.
        """
        values = {
            **self._values(now),
            "position": int(position),
            "reason": reason,
            "hint": RESYNC_HINT.format(table=now.table),
        }
        with self._db.transaction() as tx:
            if not self._note(tx, now):
                return None
            tx.execute(_GIVE_UP_LOG, values)
            parked = tx.fetch(_PARK_WITHOUT_COPY, values)
            copied = tx.fetch(_DEMAND_COPY, values)
        return Demanded(tuple(row["group_name"] for row in copied), tuple(row["group_name"] for row in parked))

    def looked(self, position: Lsn) -> None:
        """Everything that the source had at `position` was seen, and what follows from it is decided."""
        self._db.execute(_LOOKED, {"pipeline": self._pipeline, "position": int(position)})

    def last_look(self) -> tuple[Lsn, datetime] | None:
        row = self._db.fetch_one(_LAST_LOOK, {"pipeline": self._pipeline})
        return None if row is None else (Lsn(row["lsn"]), row["looked_at"])

    def unsettled_shapes(self, group: str) -> dict[str, SeenShape]:
        """By table, what a group's tables may not have in Iceberg yet. Cheap enough to ask several times a second."""
        rows = self._db.fetch(_UNSETTLED, {"pipeline": self._pipeline, "group": group})
        return {
            row["table_name"]: SeenShape(Relation.from_json(row["relation"]), Lsn(row["shape_lsn"])) for row in rows
        }

    def settle_shape(self, group: str, table: str, position: Lsn) -> None:
        """The Iceberg table has the columns that were seen at `position`, or newer ones."""
        values = {"pipeline": self._pipeline, "group": group, "table": table, "position": int(position)}
        self._db.execute(_SETTLE, values)

    def _note(self, tx: Transaction, now: Sighting) -> bool:
        return tx.execute(_REPLACE if now.number else _ADD, self._values(now)) > 0

    def _values(self, now: Sighting) -> dict[str, object]:
        return {
            "pipeline": self._pipeline,
            "table": now.table,
            "pg_oid": now.pg_oid,
            "number": now.number,
            "footprint": now.footprint.to_json(),
            "relation": None if now.relation is None else now.relation.to_json().decode(),
            "shape_lsn": int(now.shape_position),
        }


def _sighting(row: Row) -> Sighting:
    return Sighting(
        table=row["table_name"],
        pg_oid=row["pg_oid"],
        footprint=Footprint.from_json(row["footprint"]),
        relation=None if row["relation"] is None else Relation.from_json(row["relation"]),
        shape_position=Lsn(row["shape_lsn"]),
        number=row["number"],
        earlier=None if row["earlier"] is None else Relation.from_json(row["earlier"]),
    )
