"""Whether the tables of the source are the ones that the state means, and whether all their changes are sent.

A table is its oid: one that is renamed goes on, and another one under its name is not taken for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from icestream.model.position import Lsn
from icestream.model.table import TableName, TableState
from icestream.observe.logs import fields
from icestream.sources.postgres.catalog import ListedTable, list_tables
from icestream.sources.postgres.connection import Connection
from icestream.sources.postgres.publication import PublishedTable, find_publication
from icestream.sources.postgres.slot import read_position
from icestream.state.tables import TableRow, Tables

log = logging.getLogger(__name__)

_FOLLOWED: Final = frozenset((TableState.PENDING, TableState.COPYING, TableState.LIVE))

_Step: TypeAlias = Callable[[], object]


@dataclass(frozen=True)
class _View:
    """The source as it is now."""

    names: Mapping[int, TableName]
    oids: Mapping[TableName, int]
    whole: Mapping[int, PublishedTable]
    publication_oid: int | None
    position: Lsn


class Membership:
    """What it does may be repeated, and leaves nothing to do until the source changes again."""

    def __init__(self, tables: Tables, publication: str) -> None:
        self._tables = tables
        self._publication = publication

    def settle(self, conn: Connection) -> None:
        """Follows tables that were renamed, and parks those of which changes are missing."""
        view = self._look(conn)
        for step in (*self._moves(view), *self._losses(view)):
            step()

    def agree(self, conn: Connection) -> None:
        """To be called once the publication fits: from now on every table has to stay in it as it is."""
        view = self._look(conn)
        for step in (*self._notes(view), *self._leftovers(view)):
            step()

    def note(self, conn: Connection) -> frozenset[int]:
        """To be called before a snapshot is taken. Gives the oids of the tables that can be copied at it."""
        view = self._look(conn)
        for step in self._notes(view):
            step()
        return frozenset(view.whole)

    def is_settled(self, conn: Connection, publication_oid: int) -> bool:
        """Whether there is nothing to settle or to publish. Changes nothing."""
        view = self._look(conn)
        steps = (*self._moves(view), *self._losses(view), *self._leftovers(view))
        return not steps and view.publication_oid == publication_oid

    def names_of(self, conn: Connection) -> list[TableName]:
        """Of the tables that are still there."""
        names = {table.oid: table.name for table in list_tables(conn)}
        return sorted({names[row.pg_oid] for row in self._rows() if row.pg_oid in names})

    def _look(self, conn: Connection) -> _View:
        publication = find_publication(conn, self._publication)
        listed = list_tables(conn)
        return _View(
            names={table.oid: table.name for table in listed},
            oids=oids_by_name(listed),
            whole=publication.whole if publication else {},
            publication_oid=publication.oid if publication else None,
            position=read_position(conn),  # last: whatever was seen has been written by then
        )

    def _rows(self) -> list[TableRow]:
        return [row for row in self._tables.all() if row.state is not TableState.REMOVED]

    def _moves(self, view: _View) -> Iterator[_Step]:
        for row in self._rows():
            other, name = view.oids.get(row.configured, row.pg_oid), view.names.get(row.pg_oid, row.source)
            if other != row.pg_oid:
                yield partial(self._replace, row, other, is_there=row.pg_oid in view.names)
            elif name != row.source:
                yield partial(self._rename, row, name)

    def _losses(self, view: _View) -> Iterator[_Step]:
        for row in self._rows():
            reason = self._loss(row, view) if row.state in _FOLLOWED or row.resumable_since else None
            if reason is not None and row.state is TableState.PARKED:
                yield partial(self._tables.give_up_log, row.key, reason)
            elif reason is not None:
                yield partial(self._park, row, reason)

    def _notes(self, view: _View) -> Iterator[_Step]:
        for row in filter(_is_open, self._rows()):
            found = view.whole.get(row.pg_oid)
            if found is not None and found.members != row.members:
                yield partial(self._tables.note_members, row, found.members, view.position)

    def _leftovers(self, view: _View) -> Iterator[_Step]:
        for row in filter(_is_open, self._rows()):
            if row.pg_oid not in view.whole:
                reason = f"{row.source} is not in publication '{self._publication}', or not whole"
                yield partial(self._park, row, reason)

    def _loss(self, row: TableRow, view: _View) -> str | None:
        """Why changes of the table were not sent; None if all were. Of one without a copy yet, none are missing."""
        if row.pg_oid not in view.names:
            return f"{row.source} was dropped"
        if row.state is TableState.PENDING or row.members is None:
            return None
        found = view.whole.get(row.pg_oid)
        if found is None:
            return f"{row.source} was missing in publication '{self._publication}', or not whole: changes were not sent"
        if not found.members & row.members:
            return f"{row.source} was taken out of publication '{self._publication}' for a while: changes were not sent"
        return None

    def _replace(self, row: TableRow, pg_oid: int, *, is_there: bool) -> None:
        happened = "another table has its name now" if is_there else "table was dropped and created again"
        reason = f"{happened} (oid {row.pg_oid} → {pg_oid})"
        self._tables.replace(row.key, pg_oid, reason)
        log.error("table is parked", extra=fields(table=row.key, reason=reason))

    def _rename(self, row: TableRow, name: TableName) -> None:
        self._tables.note_name(row.key, name)
        log.warning("table was renamed, and goes on", extra=fields(table=row.key, was=row.source, now=name))

    def _park(self, row: TableRow, reason: str, hint: str | None = None) -> None:
        if self._tables.park(row.key, reason, hint, seen=row):
            log.error("table is parked", extra=fields(table=row.key, reason=reason))


def _is_open(row: TableRow) -> bool:
    """Whether nothing was sent or copied yet that would have to be continued."""
    return row.state is TableState.PENDING or (row.state in _FOLLOWED and row.members is None)


def oids_by_name(listed: Iterable[ListedTable]) -> dict[TableName, int]:
    """Of tables only: a view under the old name of a table does not take its place."""
    return {table.name: table.oid for table in listed if table.is_root}
