"""Creates the coordination schema and brings it to this program's version.

The numbered files in `migrations/` are the truth; `schema_version` says which of them have run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from icestream.errors import StateError, StateMissing, StateVersionMismatch
from icestream.state.database import Database, Transaction
from icestream.state.failures import MIGRATE_HINT

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('icestream migrate ' || %(name)s, 0))"
_SCHEMA_EXISTS = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %(name)s) AS found"
_TABLE_NAMES = "SELECT tablename FROM pg_tables WHERE schemaname = %(name)s ORDER BY tablename"
_CREATE_SCHEMA = "CREATE SCHEMA {schema}"
_CREATE_VERSIONS = """
CREATE TABLE {schema}.schema_version (
    version    int PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""
_CREATED = re.compile(r"^CREATE TABLE \{schema\}\.(\w+)", re.MULTILINE)
_APPLIED = "SELECT version, name FROM {schema}.schema_version ORDER BY version"
_NOTE_APPLIED = "INSERT INTO {schema}.schema_version (version, name) VALUES (%(version)s, %(name)s)"


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    sql: str


def migrate(db: Database) -> int:
    """Brings the schema to the newest version and returns that; may be repeated, and run by many processes at once."""
    with db.transaction() as tx:
        tx.execute(_LOCK, {"name": db.schema})
        applied = _prepared(tx, db.schema)
        for migration in _known()[len(applied) :]:
            tx.execute(migration.sql)
            tx.execute(_NOTE_APPLIED, {"version": migration.version, "name": migration.name})
    return _known()[-1].version


def require_current(db: Database) -> None:
    """For those who read and write the schema but do not make it.

    Raises StateMissing if nothing was made yet, StateVersionMismatch if it is not ours or not of this version.
    """
    with db.transaction() as tx:
        tables = _tables(tx, db.schema)
        if not tables:
            raise StateMissing(f'there is no coordination schema "{db.schema}" yet', hint=MIGRATE_HINT)
        applied = _applied(tx, db.schema, tables)
    newest = _known()[-1].version
    if len(applied) < newest:
        raise StateVersionMismatch(
            f'the coordination schema "{db.schema}" has version {len(applied)}, this program needs {newest}',
            hint=MIGRATE_HINT,
        )


def own_tables() -> list[str]:
    """Every table that is made here."""
    statements = (_CREATE_VERSIONS, *(migration.sql for migration in _known()))
    return [name for statement in statements for name in _CREATED.findall(statement)]


def _prepared(tx: Transaction, schema: str) -> list[str]:
    """Makes sure of the schema and its version table; gives the names of the migrations that have run."""
    found = tx.fetch_one(_SCHEMA_EXISTS, {"name": schema})
    if not (found and found["found"]):
        tx.execute(_CREATE_SCHEMA)
    tables = _tables(tx, schema)
    if tables:
        return _applied(tx, schema, tables)
    tx.execute(_CREATE_VERSIONS)
    return []


def _applied(tx: Transaction, schema: str, tables: Sequence[str]) -> list[str]:
    """Raises StateVersionMismatch if another program, or a newer version of this one, has made these tables."""
    if "schema_version" not in tables:
        raise StateVersionMismatch(
            f'schema "{schema}" holds tables of another program ({_some(tables)})',
            hint=f'name another `state.coordinator_schema`, or remove it with `DROP SCHEMA "{schema}" CASCADE`',
        )
    rows = [(row["version"], row["name"]) for row in tx.fetch(_APPLIED)]
    known = [(migration.version, migration.name) for migration in _known()]
    if rows[: len(known)] != known[: len(rows)]:
        raise StateVersionMismatch(
            f'the versions noted in "{schema}".schema_version are not ours',
            hint="name another `state.coordinator_schema`",
        )
    if len(rows) > len(known):
        raise StateVersionMismatch(
            f'the coordination schema "{schema}" has version {rows[-1][0]}, this program knows up to {known[-1][0]}',
            hint="run the newer Icestream that made it",
        )
    return [name for _, name in rows]


def _tables(tx: Transaction, schema: str) -> list[str]:
    return [row["tablename"] for row in tx.fetch(_TABLE_NAMES, {"name": schema})]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


@cache
def _known() -> tuple[Migration, ...]:
    folder = resources.files("icestream.state") / "migrations"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    migrations = []
    for file in files:
        number, _, name = file.name.removesuffix(".sql").partition("_")
        migrations.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    if [migration.version for migration in migrations] != list(range(1, len(migrations) + 1)):
        raise StateError(f"the migrations {[file.name for file in files]} are not numbered from 1 without a gap")
    return tuple(migrations)
