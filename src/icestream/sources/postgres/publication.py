"""The publication: which tables the server sends.

One that Icestream made carries a comment that names its pipeline, which keeps it equal to the settings; no other
pipeline may use it. One that Icestream has not made is only checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import sql

from icestream.errors import SourceError
from icestream.model.table import TableName
from icestream.sources.postgres.connection import Connection, querying

_OPERATIONS: Final = "insert, update, delete, truncate"
_OURS: Final = "made by Icestream for pipeline "

_PUBLICATION: Final = """
SELECT p.oid, p.puballtables, p.pubviaroot,
       p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate,
       coalesce(obj_description(p.oid, 'pg_publication'), ''),
       pg_has_role(p.pubowner, 'USAGE')
  FROM pg_publication p
 WHERE p.pubname = %s
"""

# What is published, under the names it is published by; the members are what the publication lists itself. The view
# pg_publication_tables would say the same, but locks every table, and so waits behind an ALTER TABLE that waits for us.
_PUBLISHED: Final = """
WITH publication AS (SELECT * FROM pg_publication WHERE oid = %(oid)s),
     named AS (
       SELECT r.oid AS member, prrelid AS oid, {narrowed} AS narrowed
         FROM pg_publication_rel r
        WHERE prpubid = %(oid)s),
     listed AS (
       SELECT c.oid, NOT publication.puballtables AND s.member IS NULL AND coalesce(named.narrowed, false) AS narrowed,
              array_remove(ARRAY[CASE WHEN publication.puballtables THEN publication.oid END, named.member, s.member],
                           NULL)::bigint[] AS members
         FROM publication
        CROSS JOIN pg_class c
         LEFT JOIN named ON named.oid = c.oid
         LEFT JOIN ({schemas}) s ON s.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p')
          AND (publication.puballtables OR named.oid IS NOT NULL OR s.member IS NOT NULL))
SELECT c.oid::bigint, n.nspname, c.relname, coalesce(listed.narrowed, false), listed.members || sent.members
  FROM publication
 CROSS JOIN pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN listed ON listed.oid = c.oid
 CROSS JOIN LATERAL (
       SELECT count(*) > 0 AS by_ancestor, array_agg(member) AS members
         FROM pg_partition_ancestors(c.oid) a (oid) JOIN listed USING (oid), unnest(listed.members) member
        WHERE c.relispartition AND a.oid <> c.oid) sent
 WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
   AND CASE WHEN publication.pubviaroot THEN listed.oid IS NOT NULL AND NOT sent.by_ancestor
            ELSE c.relkind = 'r' AND (listed.oid IS NOT NULL OR sent.by_ancestor) END
"""
# 14 knows neither row filters and column lists nor the tables of a schema. Generated columns are never needed.
_FILTERS_VERSION: Final = 150000
_NARROWED: Final = """
(r.prqual IS NOT NULL OR r.prattrs IS NOT NULL AND EXISTS (
   SELECT FROM pg_attribute a
    WHERE a.attrelid = r.prrelid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
      AND NOT a.attnum = ANY (r.prattrs)))
"""
_SCHEMAS: Final = "SELECT oid AS member, pnnspid AS oid FROM pg_publication_namespace WHERE pnpubid = %(oid)s"
_NO_SCHEMAS: Final = "SELECT NULL::oid AS member, NULL::oid AS oid WHERE false"
# The first releases of each major version that tell transactions that are being decoded of a changed publication.
_FIXED_IN: Final = {14: 140018, 15: 150013, 16: 160009, 17: 170005}
_LOCK_TIMEOUT: Final = "2s"  # writers queue behind us for so long
_MEMBERS: Final = """
SELECT n.nspname, c.relname
  FROM pg_publication_rel r
  JOIN pg_class c ON c.oid = r.prrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE r.prpubid = %s
"""


@dataclass(frozen=True)
class PublishedTable:
    """`members`: the entries of the publication by which it is sent. One that was taken out and put back is another."""

    oid: int
    name: TableName
    is_narrowed: bool  # a row filter or a column list holds something back
    members: frozenset[int]


@dataclass(frozen=True)
class Publication:
    name: str
    oid: int
    all_tables: bool
    via_root: bool
    all_operations: bool
    comment: str
    may_alter: bool
    members: frozenset[TableName]
    tables: tuple[PublishedTable, ...]

    @property
    def published(self) -> frozenset[TableName]:
        return frozenset(table.name for table in self.tables)

    @property
    def narrowed(self) -> frozenset[TableName]:
        return frozenset(table.name for table in self.tables if table.is_narrowed)

    @property
    def whole(self) -> dict[int, PublishedTable]:
        """Of which every change is sent, by oid."""
        if not self.all_operations:
            return {}
        return {table.oid: table for table in self.tables if not table.is_narrowed}

    @property
    def owner(self) -> str | None:
        """The pipeline that it was made for; None if Icestream has not made it."""
        return self.comment.removeprefix(_OURS) if self.comment.startswith(_OURS) else None


def find_publication(conn: Connection, name: str) -> Publication | None:
    with querying():
        row = conn.execute(_PUBLICATION, (name,)).fetchone()
        if row is None:
            return None
        oid, all_tables, via_root, all_operations, comment, may_alter = row
        members = conn.execute(_MEMBERS, (oid,)).fetchall()
        published = conn.execute(_published_query(conn.info.server_version), {"oid": oid}).fetchall()
    return Publication(
        *(name, oid, all_tables, via_root, all_operations, comment, may_alter),
        members=_names(members),
        tables=tuple(
            PublishedTable(oid, TableName(schema, table), is_narrowed, frozenset(entries))
            for oid, schema, table, is_narrowed, entries in published
        ),
    )


def ensure_publication(conn: Connection, name: str, tables: Sequence[TableName], *, pipeline: str) -> Publication:
    """The publication sends exactly these tables afterwards; a foreign one at least these. Gives it as it was found.

    May be repeated. Raises SourceError when it is that of another pipeline, and with the statement to run when a
    foreign one does not fit; SourceUnavailable while a table that has to be added is written to by a transaction that
    must end first.
    """
    found = find_publication(conn, name)
    if found is None:
        _run(conn, creation(name, tables), _comment(name, pipeline))
        return ensure_publication(conn, name, tables, pipeline=pipeline)
    refusal = another_owner(found, pipeline)
    if refusal is not None:
        raise refusal
    if found.owner is None:
        _check_foreign(conn, found, tables)
    elif found.members != set(tables) or found.narrowed or not (found.via_root and found.all_operations):
        added = sorted(set(tables) - found.members)
        _run(conn, *_writers_ended(conn, added), _set_tables(name, tables), _set_options(name))
    return found


def another_owner(found: Publication, pipeline: str) -> SourceError | None:
    """Why `pipeline` may not use it. Not even if it fits now: its owner changes it whenever its own tables change."""
    if found.owner in (None, pipeline):
        return None
    drop = sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(found.name)).as_string()
    return SourceError(
        f"publication {found.name!r} belongs to pipeline {found.owner!r}, this is pipeline {pipeline!r}",
        hint=f"choose another `source.logical.publication_name`; or, if that pipeline is given up, run `{drop}`",
    )


def drop_publication(conn: Connection, name: str, *, pipeline: str) -> bool:
    """Drops it if it was made for this pipeline; says whether it did."""
    found = find_publication(conn, name)
    if found is None or found.owner != pipeline:
        return False
    _run(conn, sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(name)))
    return True


def missing_statement(conn: Connection, found: Publication, tables: Iterable[TableName]) -> str | None:
    """The statement that makes a foreign publication fit, None if it does."""
    missing = sorted(set(tables) - found.published)
    # A partitioned table that is a member but not published is sent as its partitions.
    if not found.all_operations or (missing and (found.all_tables or found.members.intersection(missing))):
        return _set_options(found.name).as_string(conn)
    if missing:
        add = sql.SQL("ALTER PUBLICATION {} ADD TABLE {}").format(sql.Identifier(found.name), _list(missing))
        return add.as_string(conn)
    return None


def widening_statements(publication: str, table: TableName) -> tuple[str, str]:
    """What makes a publication send all of a table that it has a row filter or a column list for."""
    drop = sql.SQL("ALTER PUBLICATION {} DROP TABLE {}").format(sql.Identifier(publication), _list([table]))
    add = sql.SQL("ALTER PUBLICATION {} ADD TABLE {}").format(sql.Identifier(publication), _list([table]))
    return drop.as_string(), add.as_string()


def _check_foreign(conn: Connection, found: Publication, tables: Sequence[TableName]) -> None:
    statement = missing_statement(conn, found, tables)
    if statement is not None:
        raise SourceError(
            f"publication {found.name!r} was not made by Icestream and does not send what the settings ask for",
            hint=f"run `{statement}`, or choose another `source.logical.publication_name`",
        )
    for table in sorted(found.narrowed.intersection(tables)):
        drop, add = widening_statements(found.name, table)
        raise SourceError(
            f"publication {found.name!r} holds back rows or columns of {table} (a row filter or a column list)",
            hint=f"run `{drop}` and `{add}`, or choose another `source.logical.publication_name`",
        )


def creation(name: str, tables: Sequence[TableName]) -> sql.Composed:
    return sql.SQL("CREATE PUBLICATION {} FOR TABLE {} WITH (publish = {}, publish_via_partition_root = true)").format(
        sql.Identifier(name), _list(tables), sql.Literal(_OPERATIONS)
    )


def _comment(name: str, pipeline: str) -> sql.Composed:
    return sql.SQL("COMMENT ON PUBLICATION {} IS {}").format(sql.Identifier(name), sql.Literal(_OURS + pipeline))


def _set_tables(name: str, tables: Sequence[TableName]) -> sql.Composed:
    return sql.SQL("ALTER PUBLICATION {} SET TABLE {}").format(sql.Identifier(name), _list(tables))


def _set_options(name: str) -> sql.Composed:
    return sql.SQL("ALTER PUBLICATION {} SET (publish = {}, publish_via_partition_root = true)").format(
        sql.Identifier(name), sql.Literal(_OPERATIONS)
    )


def _writers_ended(conn: Connection, added: Sequence[TableName]) -> list[sql.Composed]:
    """Lets no transaction be open that has written to a table when that is added; gives up soon, to be tried again."""
    if not added or not forgets_additions(conn.info.server_version):
        return []
    lock = sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(_list(added))
    return [sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(_LOCK_TIMEOUT)), lock]


def forgets_additions(server_version: int) -> bool:
    """Whether decoding a transaction that was open at an ALTER PUBLICATION remembers the publication as it was."""
    return server_version < _FIXED_IN.get(server_version // 10000, 0)


def _list(tables: Iterable[TableName]) -> sql.Composed:
    # ONLY: children of plain inheritance are tables of their own; for a partitioned table it changes nothing.
    return sql.SQL(", ").join(sql.SQL("ONLY {}").format(sql.Identifier(t.schema, t.name)) for t in tables)


def _published_query(server_version: int) -> bytes:
    knows_filters = server_version >= _FILTERS_VERSION
    narrowed, schemas = (_NARROWED, _SCHEMAS) if knows_filters else ("false", _NO_SCHEMAS)
    return _PUBLISHED.format(narrowed=narrowed, schemas=schemas).encode()


def _run(conn: Connection, *statements: sql.Composed) -> None:
    with querying(), conn.transaction():
        for statement in statements:
            conn.execute(statement)


def _names(rows: Iterable[tuple[str, str]]) -> frozenset[TableName]:
    return frozenset(TableName(schema, name) for schema, name in rows)
