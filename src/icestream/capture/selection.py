"""Which tables of the source the settings mean, and what each becomes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from icestream.config.settings import Settings
from icestream.errors import SourceError
from icestream.model.table import TableName, TableState, Target
from icestream.observe.logs import fields
from icestream.sources.postgres import ddl_trigger
from icestream.sources.postgres.catalog import ListedTable, SourceTable, list_tables, read_tables
from icestream.sources.postgres.connection import Connection
from icestream.state.tables import TableDefinition, TableRow

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Choice:
    """A table that the settings name in full or by a pattern. `oid` is None if the source has no such table.

    `source` is its name now, where it was renamed since the settings meant it first.
    """

    name: TableName
    target: Target
    oid: int | None
    source: TableName | None = None


def choose(settings: Settings, listed: Sequence[ListedTable], known: Iterable[TableRow] = ()) -> list[Choice]:
    """A pattern means tables only, not views and not the partitions of a table; and never our own state.

    A table that the state knows under a name that no table has any more goes on as what it was.
    """
    oids = {table.name: table.oid for table in listed}
    named = [TableName.parse(entry.name) for entry in settings.tables if not entry.is_pattern]
    by_pattern = [table.name for table in listed if table.is_root and not _is_state(settings, table.name)]
    chosen: dict[TableName, Choice] = {}
    for name in (*named, *by_pattern):
        target = settings.target_for(name)
        if target is not None:
            chosen[name] = Choice(name, target, oids.get(name))
    for choice in _renamed(settings, listed, known):
        chosen = {name: other for name, other in chosen.items() if other.oid != choice.oid} | {choice.name: choice}
    return sorted(chosen.values(), key=lambda choice: choice.name)


def define_tables(conn: Connection, settings: Settings, known: Iterable[TableRow]) -> list[TableDefinition]:
    """The configured tables as they are now. Raises SourceError if one is not there."""
    choices = choose(settings, list_tables(conn), known)
    missing = [str(choice.name) for choice in choices if choice.oid is None]
    if missing or not choices:
        what = f"the source has no table {', '.join(missing)}" if missing else "no table of the source matches `tables`"
        raise SourceError(what, hint="run `icestream check`")
    facts = {table.oid: table for table in read_tables(conn, [c.oid for c in choices if c.oid is not None])}
    return [_definition(choice, facts[choice.oid]) for choice in choices if choice.oid in facts]


def _renamed(settings: Settings, listed: Sequence[ListedTable], known: Iterable[TableRow]) -> list[Choice]:
    names = {table.oid: table.name for table in listed}
    taken = {table.name for table in listed if table.is_root}
    rows = [row for row in known if row.state is not TableState.REMOVED and row.pg_oid in names]
    gone = {row.configured: row.pg_oid for row in rows if row.configured not in {*taken, names[row.pg_oid]}}
    targets = {name: settings.target_for(name) for name in gone}
    return [Choice(name, target, gone[name], names[gone[name]]) for name, target in targets.items() if target]


def _definition(choice: Choice, table: SourceTable) -> TableDefinition:
    target = choice.target
    if not target.primary_key:
        # Under REPLICA IDENTITY FULL the stream does not tell the key; workers find it here.
        target = msgspec.structs.replace(target, primary_key=table.primary_key, is_key_found=True)
    if choice.source is not None:
        log.warning("table has another name now", extra=fields(table=target.key, was=choice.name, now=choice.source))
    return TableDefinition(target, choice.source or choice.name, table.oid, choice.name)


def _is_state(settings: Settings, name: TableName) -> bool:
    return name.schema in (settings.state.coordinator_schema, ddl_trigger.SCHEMA)
