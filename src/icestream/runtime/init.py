"""Looks at a database and writes down how to replicate it: a settings file, and the SQL that prepares the source."""

from __future__ import annotations

from dataclasses import dataclass, replace

from icestream.config.settings import Settings
from icestream.model.table import TableName
from icestream.runtime.draft_settings import Surveyed, settings_text
from icestream.runtime.draft_sql import sql_text
from icestream.runtime.opening import opened_source
from icestream.sources.postgres.sizes import TableSize, read_sizes
from icestream.verify.facts import SourceFacts, TableFacts, gather
from icestream.verify.findings import Finding
from icestream.verify.preflight import preflight
from icestream.verify.table_checks import judge_table


@dataclass(frozen=True)
class Draft:
    settings: str
    sql: str
    fit: int  # tables that can be replicated as they are
    unfit: int


def draft(settings: Settings) -> Draft:
    """Reads only. Raises SourceUnavailable or SourceError."""
    with opened_source(settings) as conn:
        facts = gather(conn, settings)
        sizes = read_sizes(conn, [table.table.oid for table in facts.tables if table.table is not None])
    surveyed = [_surveyed(table, facts, sizes) for table in facts.tables]
    fit = [table for table in surveyed if table.is_fit]
    return Draft(
        settings=settings_text(settings, surveyed, _of_server(facts)),
        # Published without an identity, a table could no longer be updated in the source.
        sql=sql_text(settings, [table.facts.choice.name for table in fit], _read(fit), facts.database),
        fit=len(fit),
        unfit=len(surveyed) - len(fit),
    )


def _read(tables: list[Surveyed]) -> list[TableName]:
    """What the first copy reads: the rows of a partitioned table are in its partitions."""
    held = {name for table in tables if table.size is not None for name in table.size.relations}
    return sorted(held | {table.facts.choice.name for table in tables})


def _surveyed(table: TableFacts, facts: SourceFacts, sizes: dict[int, TableSize]) -> Surveyed:
    """As it is once the statements have granted the right to read it."""
    readable = replace(table, table=replace(table.table, can_select=True)) if table.table is not None else table
    return Surveyed(table, sizes.get(table.choice.oid or 0), tuple(judge_table(readable, facts.role)))


def _of_server(facts: SourceFacts) -> list[Finding]:
    """What the tables themselves are told is left out here."""
    own = {finding for table in facts.tables for finding in judge_table(table, facts.role)}
    return [finding for finding in preflight(facts) if finding not in own]
