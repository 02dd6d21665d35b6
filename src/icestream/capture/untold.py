"""What the stream does not tell of a table: rows that are others without having been changed one by one, and columns
that changed when no row came after."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from icestream.errors import SourceUnavailable
from icestream.model.footprint import Footprint, suspicions
from icestream.model.position import Lsn
from icestream.model.table import Relation, TableState
from icestream.observe.logs import fields
from icestream.sources.postgres.catalog import SourceTable, read_tables
from icestream.sources.postgres.connection import Connection
from icestream.sources.postgres.footprints import is_confirmed, read_footprints
from icestream.sources.postgres.slot import read_position
from icestream.state.sightings import Sighting, Sightings
from icestream.state.tables import TableRow, Tables

log = logging.getLogger(__name__)


class Untold:
    """What it does may be repeated, also by several threads at once."""

    def __init__(self, tables: Tables, sightings: Sightings) -> None:
        self._tables = tables
        self._sightings = sightings

    def settle(self, conn: Connection) -> None:
        """Looks, and asks for new copies where they are needed. A table that somebody holds locked waits for the next.

        Has to be called before a snapshot is taken: what happens to a table after its first sighting is noticed.
        """
        known, oids = self._sightings.all(), _oids(self._tables.all())  # first: a look is never older than these
        footprints = read_footprints(conn, oids.values())
        found = {table.oid: table for table in read_tables(conn, oids.values())}
        position, locked = read_position(conn), False
        for key, oid in oids.items():
            if oid in footprints and oid in found:
                try:
                    self._compare(conn, key, known.get(key), footprints[oid], found[oid], position)
                except SourceUnavailable as err:
                    locked = True
                    log.warning("table cannot be looked at", extra=fields(table=key, reason=err))
        if not locked:
            self._sightings.looked(position)

    def _compare(
        self,
        conn: Connection,
        key: str,
        before: Sighting | None,
        footprint: Footprint,
        table: SourceTable,
        position: Lsn,
    ) -> None:
        relation = _followed(table, before)
        now = Sighting(key, table.oid, footprint, relation, position)
        if before is None or before.pg_oid != table.oid:
            self._sightings.note(replace(now, number=before.number if before else 0))
            return
        is_same_shape = before.relation == relation
        now = replace(now, number=before.number, shape_position=before.shape_position if is_same_shape else position)
        reason = _why_copied(conn, before.footprint, footprint)
        if reason is not None:
            self._demand(now, position, reason)
        elif not is_same_shape or not before.footprint.is_like(footprint):
            self._sightings.note(now)

    def _demand(self, now: Sighting, position: Lsn, reason: str) -> None:
        demanded = self._sightings.demand_copy(now, position, reason)
        if demanded is None:
            return
        if demanded.copied:
            log.warning("table is copied anew", extra=fields(table=now.table, reason=reason))
        if demanded.parked:
            log.error("table is parked", extra=fields(table=now.table, reason=reason))


def _oids(rows: Iterable[TableRow]) -> dict[str, int]:
    return {row.key: row.pg_oid for row in rows if row.state is not TableState.REMOVED}


def _followed(table: SourceTable, before: Sighting | None) -> Relation | None:
    """A table whose key is gone gets another one, or rows that tell more; until then it stays as it was seen."""
    if table.identity_columns:
        return table.relation()
    return before.relation if before is not None and before.pg_oid == table.oid else None


def _why_copied(conn: Connection, before: Footprint, now: Footprint) -> str | None:
    for suspicion in suspicions(before, now):
        if is_confirmed(conn, suspicion):
            return suspicion.reason
    return None
