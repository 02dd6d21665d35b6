"""The SQL that prepares a source: role, grants, publication; and what managed services want instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from psycopg import sql

from icestream.config.settings import Settings
from icestream.model.table import TableName
from icestream.sources.postgres.publication import creation

_MANAGED = """\
-- Logical replication has to be on (wal_level = logical). On a server of your own, followed by a restart:
--   ALTER SYSTEM SET wal_level = 'logical';
--
-- Managed services:
--   Amazon RDS, Aurora   set rds.logical_replication = 1 in the (cluster) parameter group and reboot; instead of
--                        REPLICATION, run `GRANT rds_replication TO <role>`
--   Google Cloud SQL     set the flag cloudsql.logical_decoding = on (restarts the instance); run the statements below
--                        as a user with cloudsqlsuperuser
--   Azure Database       (flexible server) set the server parameter wal_level = logical and restart; run the statements
--                        below as the administrator
--   Supabase             it is on already; connect to the database itself (db.<project>.supabase.co, port 5432), not to
--                        the pooler, and run the statements below as postgres
"""


def sql_text(settings: Settings, tables: Sequence[TableName], read: Sequence[TableName], database: str) -> str:
    """To be run by the owner of the tables. `read`: those and the partitions that hold their rows."""
    return "\n".join([_MANAGED, *_statements(settings, tables, read, database), ""])


def _statements(
    settings: Settings, tables: Sequence[TableName], read: Sequence[TableName], database: str
) -> Iterator[str]:
    role = sql.Identifier(settings.source.postgres.user)
    yield "-- The role, unless it is there already:"
    yield "-- " + _text("CREATE ROLE {} LOGIN PASSWORD '…'", role) + ";"
    yield _text("ALTER ROLE {} REPLICATION", role) + ";\n"
    yield "-- For the first copy:"
    for schema in sorted({table.schema for table in read}):
        yield _text("GRANT USAGE ON SCHEMA {} TO {}", sql.Identifier(schema), role) + ";"
    if tables:
        yield _text("GRANT SELECT ON {} TO {}", _names(read), role) + ";\n"
        yield "-- What is replicated. Only an owner of the tables can make it; a role that owns them does so by itself."
        yield creation(settings.source.logical.publication_name, tables).as_string() + ";\n"
    if settings.state.postgres_url is None:
        yield "-- Where Icestream remembers how far it is:"
        schema_name = sql.Identifier(settings.state.coordinator_schema)
        yield _text("CREATE SCHEMA IF NOT EXISTS {} AUTHORIZATION {}", schema_name, role) + f";  -- in {database}"


def _names(tables: Sequence[TableName]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(table.schema, table.name) for table in tables)


def _text(template: str, *parts: sql.Composable) -> str:
    return sql.SQL(template).format(*parts).as_string()
