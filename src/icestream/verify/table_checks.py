"""Is one table fit to be replicated?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from icestream.config.partition import PartitionField, SortField, Transform
from icestream.model import changelog
from icestream.model.table import RESERVED_NAMES, TableName, Target, WriteMode, matching_key
from icestream.model.types import TargetType, target_type
from icestream.sources.postgres.catalog import DEFAULT, FULL, INDEX, NOTHING, TABLE_KINDS, SourceTable
from icestream.verify.column_checks import judge_columns
from icestream.verify.facts import Role, TableFacts
from icestream.verify.findings import Finding, error, warning

_APPEND: Final = "iceberg: {write_mode: append}"
_KINDS: Final = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}


def judge_table(facts: TableFacts, role: Role) -> Iterator[Finding]:
    name, table = facts.choice.name, facts.table
    if table is None:
        yield error(f"table {name} does not exist", "correct `tables`, or create it")
    elif table.kind not in TABLE_KINDS:
        kind = _KINDS.get(table.kind, "not a table")
        yield error(f"{name} is {kind}", "replicate the tables beneath it", why="only tables have changes in the WAL")
    elif table.persistence != "p":
        yield error(
            f"table {name} is unlogged",
            f"run `ALTER TABLE {quoted(name)} SET LOGGED`",
            why="its changes are not in the WAL",
        )
    else:
        target = facts.choice.target
        yield from _rights(table, role)
        yield from _names(table, target)
        yield from judge_columns(facts, table)
        yield from _changelog_identity(table) if target.is_changelog else _key(table, target)
        for expression in target.partition:
            yield from _partition(table, PartitionField.parse(expression), target)
        for expression in target.sort_order:
            yield from _term(table, SortField.parse(expression).field, target, "sort_order")


def quoted(name: TableName) -> str:
    """As SQL writes it."""
    return f"{_quoted(name.schema)}.{_quoted(name.name)}"


def _quoted(part: str) -> str:
    is_plain = part.isascii() and part.islower() and part.isidentifier()
    return part if is_plain else '"' + part.replace('"', '""') + '"'


def _rights(table: SourceTable, role: Role) -> Iterator[Finding]:
    name = quoted(table.name)
    if not table.can_select:
        yield error(
            f"user {role.name} may not read table {table.name}",
            f"run `GRANT USAGE ON SCHEMA {_quoted(table.name.schema)} TO {role.name}` and"
            f" `GRANT SELECT ON {name} TO {role.name}`{' (and on its partitions)' if table.kind == 'p' else ''}",
            why="its first copy reads all rows",
        )
    if table.row_security:
        yield error(
            f"row-level security hides rows of {table.name} from user {role.name}",
            f"run `ALTER ROLE {role.name} BYPASSRLS`",
            why="its first copy would lack them",
        )


def _names(table: SourceTable, target: Target) -> Iterator[Finding]:
    taken = [column.name for column in table.columns if column.name in RESERVED_NAMES]
    if taken:
        yield error(
            f"table {table.name} has columns whose names Iceberg keeps for itself: {', '.join(taken)}",
            f"run `ALTER TABLE {quoted(table.name)} RENAME COLUMN …` for each",
            why="readers would take them for something else",
        )

    added = [column.name for column in table.columns if target.is_changelog and column.name in changelog.NAMES]
    if added:
        yield error(
            f"table {table.name} has columns that `write_mode: append` adds itself: {', '.join(added)}",
            f"run `ALTER TABLE {quoted(table.name)} RENAME COLUMN …` for each, or choose another `write_mode`",
            why="a name can be there once",
        )


def _changelog_identity(table: SourceTable) -> Iterator[Finding]:
    """In a changelog no row has to be matched; but PostgreSQL refuses changes that the stream could not name."""
    if not table.identity_columns:
        yield warning(
            f"table {table.name} has no replica identity, so only its INSERTs and TRUNCATEs can be replicated",
            f"run `ALTER TABLE {quoted(table.name)} REPLICA IDENTITY FULL` if its rows are ever updated or deleted",
            why="PostgreSQL refuses UPDATE and DELETE on such a table as long as it is published",
        )


def _key(table: SourceTable, target: Target) -> Iterator[Finding]:
    name, configured = quoted(table.name), target.primary_key
    unknown = [column for column in configured if column not in {known.name for known in table.columns}]
    if unknown:
        yield error(
            f"table {table.name} has no column {', '.join(unknown)}, which `primary_key` names",
            "correct `primary_key`",
            why="rows are matched by these columns",
        )
    if table.leaf_identities and set(table.leaf_identities) != {table.identity}:
        yield error(
            f"partitions of table {table.name} have another replica identity than the table itself",
            f"run `ALTER TABLE <partition> REPLICA IDENTITY …` for each, as for {name}",
            why="the stream names old rows as the partition says, and the table's key would not find them",
        )
    if table.identity == FULL and not (configured or table.primary_key):
        yield error(
            f"table {table.name} has REPLICA IDENTITY FULL and no primary key",
            f"name the columns that identify a row in `primary_key`; {_other_ways_out(name)}",
            why="its rows cannot be told apart",
        )
    elif not table.identity_columns:
        yield _no_identity(table, name)
    elif configured and not unknown and table.identity != FULL and set(configured) != set(table.identity_columns):
        yield error(
            f"the stream names rows of {table.name} by ({', '.join(table.identity_columns)}), its replica identity;"
            f" `primary_key` says ({', '.join(configured)})",
            f"run `ALTER TABLE {name} REPLICA IDENTITY FULL`, or `… REPLICA IDENTITY USING INDEX` with a unique index"
            " on these columns, or leave out `primary_key`",
            why="updates and deletes would not find their rows",
        )
    else:
        yield from _floating_key(table, target)


def _floating_key(table: SourceTable, target: Target) -> Iterator[Finding]:
    key, types = matching_key(table.relation(), target), _lake_types(table, target)
    floating = [name for name in sorted(key) if name in types and not types[name].can_be_identifier]
    if target.write_mode == WriteMode.EQUALITY and floating:
        yield error(
            f"the key of table {table.name} has floating-point numbers ({', '.join(floating)}), and `write_mode` is"
            " equality",
            "choose another `write_mode` for it",
            why="readers do not agree on which floating-point numbers are equal",
        )


def _lake_types(table: SourceTable, target: Target) -> dict[str, TargetType]:
    """What the columns become in Iceberg, with those that a changelog adds."""
    own = {
        column.name: target_type(column, target.types, is_key=column.is_key and not target.is_changelog)
        for column in table.relation().columns
    }
    added = {column.name: column.type for column in changelog.COLUMNS} if target.is_changelog else {}
    return {**added, **own}


def _partition(table: SourceTable, field: PartitionField, target: Target) -> Iterator[Finding]:
    """What Iceberg would refuse when the table is made."""
    yield from _term(table, field, target, "partition")
    if field.field_name != field.column and field.field_name in _lake_types(table, target):
        yield error(
            f"`iceberg.partition` of table {table.name} says {field}, whose partition field would be named"
            f" {field.field_name}, as a column is",
            "partition by another column or transform",
            why="Iceberg allows a name once, so the table could not be made",
        )


def _term(table: SourceTable, field: PartitionField, target: Target, key: str) -> Iterator[Finding]:
    """A column, or a transform of it, that the setting `key` names."""
    types = _lake_types(table, target)
    kind = types.get(field.column)
    if kind is None:
        yield error(
            f"table {table.name} has no column {field.column}, which `iceberg.{key}` names ({field})",
            f"correct `iceberg.{key}`; its columns are {', '.join(types)}",
            why="the Iceberg table could not be made",
        )
    elif not field.transform.takes(kind.kind):
        takes = ", ".join(transform for transform in Transform if transform.takes(kind.kind))
        yield error(
            f"`iceberg.{key}` of table {table.name} says {field}, but {field.column} becomes {kind.iceberg}, which"
            f" {field.transform} does not take",
            f"use one of {takes}, or another column",
            why="the Iceberg table could not be made",
        )


def _no_identity(table: SourceTable, name: str) -> Finding:
    why = "updates and deletes cannot be replicated, as nothing says which row was meant"
    if table.identity == NOTHING:
        return error(
            f"table {table.name} has REPLICA IDENTITY NOTHING",
            f"run `ALTER TABLE {name} REPLICA IDENTITY DEFAULT`" if table.primary_key else _ways_out(name),
            why=why,
        )
    if table.identity == INDEX:
        return error(
            f"the index that is the replica identity of table {table.name} is gone",
            f"run `ALTER TABLE {name} REPLICA IDENTITY DEFAULT`, or name another index",
            why=why,
        )
    assert table.identity == DEFAULT
    if table.primary_key:
        return error(
            f"the primary key of table {table.name} is deferrable, so PostgreSQL does not take it as replica identity",
            f"run `ALTER TABLE {name} REPLICA IDENTITY FULL`",
            why=why,
        )
    return error(
        f"table {table.name} has no primary key",
        _ways_out(name),
        why=why,
    )


def _ways_out(name: str) -> str:
    key = f"run `ALTER TABLE {name} REPLICA IDENTITY FULL` and name the columns that identify a row in `primary_key`"
    return f"{key}; {_other_ways_out(name)}"


def _other_ways_out(name: str) -> str:
    return (
        f"or run `ALTER TABLE {name} REPLICA IDENTITY USING INDEX …` with a unique index on columns that are NOT NULL;"
        f" or choose `{_APPEND}`, which keeps every change as a row. (Or run `ALTER TABLE {name} ADD PRIMARY KEY (…)`.)"
    )
