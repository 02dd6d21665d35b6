"""What the preflight judges: facts about the source, gathered once and changed by nobody."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from icestream.capture.selection import Choice, choose
from icestream.config.settings import Settings
from icestream.config.tables import ColumnSettings
from icestream.errors import SourceError
from icestream.sources.postgres.catalog import SourceTable, list_tables, read_tables
from icestream.sources.postgres.connection import Connection, connect_replication, querying
from icestream.sources.postgres.publication import Publication, find_publication, missing_statement
from icestream.sources.postgres.slot import Slot, find_slot
from icestream.state.tables import TableRow

OLDEST_VERSION: Final = 140000

_SERVER: Final = """
SELECT current_setting('server_version_num')::int,
       current_setting('server_version'),
       current_setting('wal_level'),
       current_setting('server_encoding'),
       pg_is_in_recovery(),
       current_setting('max_replication_slots')::int,
       (SELECT count(*) FROM pg_replication_slots)::int,
       current_setting('max_wal_senders')::int,
       (SELECT count(*) FROM pg_stat_replication)::int,
       (SELECT setting::bigint FROM pg_settings WHERE name = 'max_slot_wal_keep_size'),
       pg_backend_pid() <> %s
"""
_CLOCK: Final = "SELECT extract(epoch FROM clock_timestamp())::float8"
_ROLE: Final = "SELECT current_user, has_database_privilege(current_database(), 'CREATE')"


@dataclass(frozen=True)
class Server:
    version_num: int
    version: str
    wal_level: str
    encoding: str
    in_recovery: bool
    max_slots: int
    used_slots: int
    max_senders: int
    used_senders: int
    slot_wal_limit_mb: int  # max_slot_wal_keep_size; -1: none
    behind_pooler: bool


@dataclass(frozen=True)
class Role:
    name: str
    may_create: bool  # publications, in this database
    replication_refusal: SourceError | None = None  # why a replication connection could not be made


@dataclass(frozen=True)
class TableFacts:
    choice: Choice
    table: SourceTable | None  # None: the source has no such table
    columns: tuple[ColumnSettings, ...] = ()  # what the settings say about them


@dataclass(frozen=True)
class SourceFacts:
    server: Server
    role: Role
    database: str
    pipeline: str
    slot_name: str
    publication_name: str
    state_in_source: bool
    slot: Slot | None = None
    publication: Publication | None = None
    publication_statement: str | None = None  # makes a foreign publication fit
    tables: tuple[TableFacts, ...] = ()
    clock_ahead_s: float = 0.0  # the source's, of this machine's


def gather(
    conn: Connection, settings: Settings, known: Iterable[TableRow] = (), *, is_streaming: bool = False
) -> SourceFacts:
    """Reads only; leaves nothing behind. Of a server that is too old, little more than its version is asked.

    `known` are the tables of the state: one that was renamed since is still the one that the settings mean.
    `is_streaming`: a replication connection is there already, so none has to be tried.
    """
    facts = SourceFacts(
        server=_server(conn),
        role=_role(conn),
        database=conn.info.dbname,
        pipeline=settings.pipeline,
        slot_name=settings.source.logical.slot_name,
        publication_name=settings.source.logical.publication_name,
        state_in_source=settings.state.postgres_url is None,
        clock_ahead_s=_clock_ahead(conn),
    )
    if facts.server.version_num < OLDEST_VERSION:
        return facts
    tables = _tables(conn, settings, known)
    publication = find_publication(conn, facts.publication_name)
    return replace(
        facts,
        role=replace(facts.role, replication_refusal=None if is_streaming else _replication_refusal(settings)),
        slot=find_slot(conn, facts.slot_name),
        publication=publication,
        publication_statement=_statement(conn, publication, tables),
        tables=tables,
    )


def _server(conn: Connection) -> Server:
    with querying():
        # A pooler makes up the process number it tells its clients.
        return Server(*conn.execute(_SERVER, (conn.info.backend_pid,)).fetchall()[0])


def _clock_ahead(conn: Connection) -> float:
    """By the middle of a question and its answer, so that a slow network does not count."""
    asked = time.time()
    with querying():
        (told,) = conn.execute(_CLOCK).fetchall()[0]
    return float(told) - (asked + time.time()) / 2


def _role(conn: Connection) -> Role:
    with querying():
        name, may_create = conn.execute(_ROLE).fetchall()[0]
    return Role(name, may_create)


def _tables(conn: Connection, settings: Settings, known: Iterable[TableRow]) -> tuple[TableFacts, ...]:
    choices = choose(settings, list_tables(conn), known)
    found = {table.oid: table for table in read_tables(conn, [c.oid for c in choices if c.oid is not None])}
    return tuple(TableFacts(choice, found.get(choice.oid or 0), _columns(settings, choice)) for choice in choices)


def _columns(settings: Settings, choice: Choice) -> tuple[ColumnSettings, ...]:
    entry = settings.entry_for(choice.name)
    return entry.columns if entry is not None else ()


def _statement(conn: Connection, publication: Publication | None, tables: tuple[TableFacts, ...]) -> str | None:
    if publication is None or publication.owner is not None:
        return None
    return missing_statement(conn, publication, [facts.table.name for facts in tables if facts.table is not None])


def _replication_refusal(settings: Settings) -> SourceError | None:
    """Trying is the only sure way: a right to replicate has many forms, and pg_hba.conf may forbid it all the same."""
    try:
        connect_replication(settings.source.postgres.conninfo()).finish()
    except SourceError as err:
        return err
    return None
