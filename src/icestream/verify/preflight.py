"""Is the source fit to be replicated? Facts in, findings out; nothing is asked and nothing is changed here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from icestream.model.table import TableName
from icestream.sources.postgres.publication import another_owner, widening_statements
from icestream.verify.facts import OLDEST_VERSION, SourceFacts
from icestream.verify.findings import Finding, Severity, error, warning
from icestream.verify.table_checks import judge_table

__all__ = ["Finding", "Severity", "preflight"]

Check: TypeAlias = Callable[[SourceFacts], Iterator[Finding]]

_CLOCK_DIFFERENCE_S: Final = 5.0
_STANDBY_VERSION: Final = 160000  # the first that can decode on a standby


def preflight(facts: SourceFacts) -> list[Finding]:
    """Everything that stands in the way, errors first."""
    if facts.server.version_num < OLDEST_VERSION:
        return [
            error(
                f"the source is PostgreSQL {facts.server.version}; Icestream needs 14 or later",
                "upgrade the server",
                why="older ones cannot stream a large transaction before it ends",
            )
        ]
    found = [finding for check in _CHECKS for finding in check(facts)]
    return sorted(found, key=lambda finding: finding.severity is not Severity.ERROR)


def _check_server(facts: SourceFacts) -> Iterator[Finding]:
    server = facts.server
    if server.behind_pooler:
        yield error(
            "a connection pooler (PgBouncer) stands before the source",
            "name the PostgreSQL server itself in `source.postgres`",
            why="a replication slot needs a session of its own",
        )
    if server.wal_level != "logical":
        yield error(
            f"the source has wal_level = {server.wal_level}",
            "run `ALTER SYSTEM SET wal_level = 'logical'` and restart the server",
            why="only with wal_level = logical the WAL says which rows were changed",
        )
    if server.encoding == "SQL_ASCII":
        yield warning(
            "the source's encoding is SQL_ASCII",
            "convert the text in the source to UTF-8",
            why="text that is not UTF-8 is repaired with replacement characters",
        )
    if abs(facts.clock_ahead_s) >= _CLOCK_DIFFERENCE_S:
        way = "ahead of" if facts.clock_ahead_s > 0 else "behind"
        yield warning(
            f"the source's clock is {abs(facts.clock_ahead_s):.0f} s {way} this machine's",
            "let both follow a time server (chrony, ntpd)",
            why="lags are told from the source's commit times and this machine's clock, and would be wrong by as much",
        )


def _check_standby(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.server.in_recovery:
        return
    if facts.server.version_num < _STANDBY_VERSION:
        yield error(
            "the source is a standby",
            "name the primary in `source.postgres`",
            why="only PostgreSQL 16 and later can decode WAL on a standby",
        )
    if facts.state_in_source:
        yield error(
            "the source is a standby and cannot hold the state",
            "set `state.postgres_url` to a database that can be written",
            why="how far each table has come is written with every step",
        )
    if facts.publication is None:
        yield error(
            f"publication {facts.publication_name!r} does not exist, and a standby cannot create it",
            "create it on the primary, for the tables of `tables`, WITH (publish_via_partition_root = true)",
            why="the server sends only tables that are published",
        )


def _check_role(facts: SourceFacts) -> Iterator[Finding]:
    refusal = facts.role.replication_refusal
    if refusal is not None:
        yield error(str(refusal), refusal.hint)


def _check_room(facts: SourceFacts) -> Iterator[Finding]:
    server = facts.server
    needs = 0 if facts.slot else 1
    free_slots, free_senders = server.max_slots - server.used_slots, server.max_senders - server.used_senders
    if free_slots < needs:
        yield error(
            f"all {server.max_slots} replication slots are taken",
            "raise `max_replication_slots` and restart the server, or drop one that nobody needs",
            why="a slot keeps the WAL that was not captured yet",
        )
    elif free_slots < needs + 1:
        yield warning(
            "no replication slot is left for copies of tables that are added later",
            "raise `max_replication_slots` and restart the server",
            why="each such copy needs a temporary slot for its snapshot",
        )
    if free_senders < 1 and not (facts.slot and facts.slot.active):
        # With a slot of ours there was room before, and capture waits for it.
        finding = warning if facts.slot else error
        yield finding(
            f"all {server.max_senders} WAL senders are taken",
            "raise `max_wal_senders` and restart the server",
            why="the stream needs one",
        )


def _check_slot(facts: SourceFacts) -> Iterator[Finding]:
    slot = facts.slot
    if facts.server.slot_wal_limit_mb >= 0:
        yield warning(
            f"max_slot_wal_keep_size is {facts.server.slot_wal_limit_mb} MB",
            "run `ALTER SYSTEM SET max_slot_wal_keep_size = …` and `SELECT pg_reload_conf()` if that is too little",
            why="if Icestream stops for so long that the source writes more WAL, the slot is lost and all tables are"
            " copied anew",
        )
    if slot is None:
        return
    if slot.plugin != "pgoutput" or slot.database != facts.database:
        yield error(
            f"replication slot {slot.name!r} exists for plugin {slot.plugin} in database {slot.database}",
            "choose another `source.logical.slot_name`",
            why="it belongs to somebody else",
        )


def _check_publication(facts: SourceFacts) -> Iterator[Finding]:
    if facts.server.in_recovery and facts.publication is None:
        return
    refusal = another_owner(facts.publication, facts.pipeline) if facts.publication else None
    if refusal is not None:
        yield error(
            str(refusal),
            refusal.hint,
            why="each pipeline keeps its publication equal to its own tables, and takes those of another out",
        )
    elif facts.publication_statement is not None:
        yield error(
            f"publication {facts.publication_name!r} was not made by Icestream and does not send what `tables` names",
            f"run `{facts.publication_statement}`, or choose another `source.logical.publication_name`",
            why="the server sends only what is published, and a publication of somebody else is not changed",
        )
    elif facts.publication is None or facts.publication.owner is not None:
        yield from _check_publication_rights(facts)
    else:
        yield from _check_narrowed(facts, facts.publication.narrowed)


def _check_narrowed(facts: SourceFacts, narrowed: frozenset[TableName]) -> Iterator[Finding]:
    for table in sorted(narrowed.intersection(facts.table.name for facts in facts.tables if facts.table)):
        drop, add = widening_statements(facts.publication_name, table)
        yield error(
            f"publication {facts.publication_name!r} holds back rows or columns of {table} (a row filter or a column"
            " list)",
            f"run `{drop}` and `{add}`, or choose another `source.logical.publication_name`",
            why="what is held back would be missing in Iceberg",
        )


def _check_publication_rights(facts: SourceFacts) -> Iterator[Finding]:
    tables = [facts.table for facts in facts.tables if facts.table is not None]
    published = facts.publication.members if facts.publication else frozenset()
    foreign = [str(table.name) for table in tables if not table.is_owner and table.name not in published]
    instead = f"let an owner create publication {facts.publication_name!r}"
    if foreign:
        yield error(
            f"user {facts.role.name} does not own {', '.join(foreign)} and may not publish them",
            instead,
            why="only the owner of a table can add it to a publication",
        )
    if facts.publication is None and not facts.role.may_create:
        yield error(
            f"user {facts.role.name} may not create publications in database {facts.database}",
            f"run `GRANT CREATE ON DATABASE {facts.database} TO {facts.role.name}`, or {instead}",
            why="the server sends only tables that are published",
        )
    if facts.publication is not None and not facts.publication.may_alter:
        yield error(
            f"publication {facts.publication_name!r} belongs to another user",
            "run as its owner",
            why="Icestream keeps it equal to `tables`, which only its owner may do",
        )


def _check_targets(facts: SourceFacts) -> Iterator[Finding]:
    sources = defaultdict(list)
    for table in facts.tables:
        sources[table.choice.target.key].append(str(table.choice.name))
    for target, names in sources.items():
        if len(names) > 1:
            yield error(
                f"{' and '.join(names)} would both become {target}",
                "give them different names with `iceberg.name`, or leave `sink.namespace` empty",
                why="an Iceberg table has one source",
            )
    if not facts.tables:
        yield error(
            "no table of the source matches `tables`",
            "correct the patterns in `tables`",
            why="there is nothing to replicate",
        )


def _check_tables(facts: SourceFacts) -> Iterator[Finding]:
    for table in facts.tables:
        yield from judge_table(table, facts.role)


_CHECKS: Final[tuple[Check, ...]] = (
    _check_server,
    _check_standby,
    _check_role,
    _check_room,
    _check_slot,
    _check_publication,
    _check_targets,
    _check_tables,
)
