"""How large tables are, from the relations' real size and what the planner knows; nothing is counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from icestream.model.table import TableName
from icestream.sources.postgres.connection import Connection, querying

# A table that was never analyzed has no row count: then a row is taken to need this many bytes.
_GUESSED_ROW_BYTES: Final = 100
_SIZES: Final = """
SELECT root.oid::bigint,
       coalesce(sum(CASE WHEN leaf.relpages > 0 AND leaf.reltuples >= 0 THEN leaf.reltuples / leaf.relpages * pages.n
                         ELSE pages.n * current_setting('block_size')::int / %(row_bytes)s END), 0)::bigint,
       coalesce(bool_or(pages.n > 0 AND (leaf.relpages = 0 OR leaf.reltuples < 0)), false),
       coalesce(sum(pg_table_size(leaf.oid)), 0)::bigint,
       coalesce(array_agg(pages.n), '{}'),
       coalesce(array_agg(leaf.schema), '{}'), coalesce(array_agg(leaf.name), '{}')
  FROM unnest(%(oids)s::oid[]) AS root (oid)
  LEFT JOIN LATERAL (
       SELECT c.oid, c.relpages, c.reltuples, n.nspname::text AS schema, c.relname::text AS name
         FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid IN (SELECT coalesce(tree.relid, root.oid)
                          FROM (SELECT) one LEFT JOIN pg_partition_tree(root.oid) tree ON tree.isleaf)
          AND c.relkind = 'r'
  ) leaf ON true
 CROSS JOIN LATERAL (
       SELECT coalesce(pg_relation_size(leaf.oid), 0) / current_setting('block_size')::int AS n) pages
 GROUP BY root.oid
"""


@dataclass(frozen=True)
class TableSize:
    oid: int
    rows: int  # about
    is_guess: bool  # the table was never analyzed, so `rows` is made from its pages
    bytes: int  # of the heap and of what is stored out of line
    pages: tuple[int, ...]  # of the heap; of a partitioned table, of each partition
    relations: tuple[TableName, ...] = ()  # that hold the rows, in the same order

    def ranges(self, pages_per_range: int) -> int:
        """How many ranges the first copy reads, each by a task that writes a file."""
        return sum(max(1, -(-pages // pages_per_range)) for pages in self.pages)


def read_sizes(conn: Connection, oids: Iterable[int]) -> dict[int, TableSize]:
    with querying():
        rows = conn.execute(_SIZES, {"oids": list(oids), "row_bytes": _GUESSED_ROW_BYTES}).fetchall()
    return {row[0]: _size(*row) for row in rows}


def _size(
    oid: int, rows: int, is_guess: bool, size: int, pages: list[int], schemas: list[str], names: list[str]
) -> TableSize:
    """A table without partitions yet, or that is none, holds no rows."""
    held = [TableName(schema, name) for schema, name in zip(schemas, names, strict=True) if name is not None]
    return TableSize(oid, rows, is_guess, size, tuple(pages) if held else (), tuple(held))
