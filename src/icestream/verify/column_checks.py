"""Are the columns of a table those that the settings say?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from icestream.config.tables import ColumnSettings
from icestream.model.type_names import means
from icestream.sources.postgres.catalog import CatalogColumn, SourceTable
from icestream.verify.facts import TableFacts
from icestream.verify.findings import Finding, error, warning

_CORRECT: Final = "correct `columns` of the table, or leave it out: then the source alone says what there is"
_WHY: Final = "the table would not become what `columns` promises"


def judge_columns(facts: TableFacts, table: SourceTable) -> Iterator[Finding]:
    """Nothing where the settings name no columns."""
    there = {column.name: column for column in table.columns}
    for expected in facts.columns:
        found = there.get(expected.name)
        if found is None:
            columns = f"{_CORRECT}; its columns are {', '.join(there)}"
            what = f"table {table.name} has no column {expected.name} ({expected.pg_type}), which `columns` names"
            yield error(what, columns, why=_WHY)
        else:
            yield from _judge(table, found, expected)
    unnamed = there.keys() - {column.name for column in facts.columns} if facts.columns else ()
    if unnamed:
        yield warning(
            f"table {table.name} has columns that `columns` does not name: {', '.join(sorted(unnamed))}",
            _CORRECT,
            why="they are replicated too",
        )


def _judge(table: SourceTable, found: CatalogColumn, expected: ColumnSettings) -> Iterator[Finding]:
    if not means(expected.pg_type, found.type.base_oid if found.type else found.type_oid):
        yield error(
            f"column {found.name} of table {table.name} is {found.type_name}, and `columns` says {expected.pg_type}",
            _CORRECT,
            why=_WHY,
        )
    # Not said is not the same as said to be false: pg2iceberg's files leave it out.
    if "nullable" in expected.model_fields_set and not expected.nullable and not found.not_null:
        yield warning(
            f"column {found.name} of table {table.name} may hold NULL, and `columns` says it may not",
            _CORRECT,
            why="a NULL is replicated as it is",
        )
