"""What the source's catalog says about its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from psycopg.rows import dict_row

from icestream.model.table import Column, Relation, TableName
from icestream.sources.postgres.connection import Connection, querying

# Identities as pg_class.relreplident has them.
DEFAULT: Final = "d"
NOTHING: Final = "n"
FULL: Final = "f"
INDEX: Final = "i"

TABLE_KINDS: Final = ("r", "p")  # an ordinary and a partitioned table; nothing else can be replicated

_NAMES: Final = """
SELECT c.oid::bigint, n.nspname, c.relname, c.relkind IN ('r', 'p') AND NOT c.relispartition
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
 ORDER BY n.nspname, c.relname
"""


@dataclass(frozen=True)
class ListedTable:
    """A name in the catalog. `is_root`: a table of its own, neither a view nor a partition of another one."""

    oid: int
    name: TableName
    is_root: bool


@dataclass(frozen=True)
class TypeFacts:
    """What a type is made of. `base_oid` is the type itself where it is no domain, `element_oid` 0 where no array."""

    base_oid: int
    base_typmod: int
    element_oid: int


@dataclass(frozen=True)
class CatalogColumn:
    name: str
    type_oid: int
    typmod: int
    not_null: bool
    is_generated: bool
    number: int = 0
    has_default: bool = False
    missing: str | None = None  # the constant default that rows from before the column hold
    type: TypeFacts | None = None
    type_name: str = ""  # as SQL writes it

    def described(self, *, is_key: bool, is_primary: bool) -> Column:
        """As the stream tells it, with what only the catalog knows."""
        facts = self.type or TypeFacts(self.type_oid, -1, 0)
        return Column(
            name=self.name,
            type_oid=self.type_oid,
            typmod=self.typmod,
            is_key=is_key,
            number=self.number,
            is_primary=is_primary,
            base_oid=facts.base_oid if facts.base_oid != self.type_oid else 0,
            base_typmod=facts.base_typmod,
            element_oid=facts.element_oid,
            missing=self.missing,
            is_filled=self.has_default and self.missing is None,
        )


@dataclass(frozen=True)
class SourceTable:
    oid: int
    name: TableName
    kind: str  # pg_class.relkind
    persistence: str  # p permanent, u unlogged, t temporary
    identity: str  # pg_class.relreplident
    is_partition: bool
    can_select: bool
    is_owner: bool
    row_security: bool  # policies hide rows from this role
    columns: tuple[CatalogColumn, ...]
    primary_key: tuple[str, ...]
    primary_key_deferrable: bool
    identity_index: tuple[str, ...]  # columns of the index named by REPLICA IDENTITY USING INDEX
    leaf_identities: tuple[str, ...] = ()  # of the partitions that hold the rows of a partitioned table

    @property
    def identity_columns(self) -> tuple[str, ...]:
        """The columns by which the stream names an old row; empty if it cannot."""
        if self.identity == FULL:
            return tuple(column.name for column in self.columns if not column.is_generated)
        if self.identity == INDEX:
            return self.identity_index
        if self.identity == DEFAULT and not self.primary_key_deferrable:
            return self.primary_key
        return ()

    def relation(self) -> Relation:
        """The shape as the stream will tell it, and what the catalog adds; generated columns are not sent."""
        keys = frozenset(self.identity_columns)
        columns = (
            column.described(is_key=column.name in keys, is_primary=column.name in self.primary_key)
            for column in self.columns
            if not column.is_generated
        )
        return Relation(self.oid, self.name.schema, self.name.name, self.identity, tuple(columns))


def list_tables(conn: Connection) -> list[ListedTable]:
    """Every table, view and foreign table outside the system schemas, by name."""
    with querying():
        rows = conn.execute(_NAMES).fetchall()
    return [ListedTable(oid, TableName(schema, name), is_root) for oid, schema, name, is_root in rows]


def read_tables(conn: Connection, oids: Iterable[int]) -> list[SourceTable]:
    """Facts about these tables, by name. One that is gone by now is left out."""
    with querying(), conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(_query("tables.sql"), (list(oids),)).fetchall()
    types = read_types(conn, {column["type_oid"] for row in rows for column in row["columns"]})
    return [_source_table(types, **row) for row in rows]


def read_types(conn: Connection, oids: Iterable[int]) -> dict[int, TypeFacts]:
    with querying():
        rows = conn.execute(_query("types.sql"), (list(oids),)).fetchall()
    return {oid: TypeFacts(*facts) for oid, *facts in rows}


def _source_table(
    types: Mapping[int, TypeFacts],
    *,
    schema: str,
    name: str,
    columns: list[dict[str, Any]],
    primary_key: list[str],
    identity_index: list[str],
    leaf_identities: list[str],
    **facts: Any,
) -> SourceTable:
    return SourceTable(
        name=TableName(schema, name),
        columns=tuple(CatalogColumn(**column, type=types.get(column["type_oid"])) for column in columns),
        primary_key=tuple(primary_key),
        identity_index=tuple(identity_index),
        leaf_identities=tuple(leaf_identities),
        **facts,
    )


@cache
def _query(file: str) -> bytes:
    return files("icestream.sources.postgres").joinpath(file).read_bytes()
