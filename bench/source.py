"""The source: a PostgreSQL server as one would run it, and a database of its own for each measurement."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from icestream.embedded.postgres import SUPERUSER, EmbeddedPostgres
from icestream.model.position import Lsn

ORDERS = "orders"
SIDE = "side"
SUMMED = ("id", "amount", "customer_id")  # of both

# fsync and synchronous_commit stay on. No checkpoint falls into a measurement.
_SETTINGS = {
    "wal_level": "logical",
    "shared_buffers": "512MB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "1h",
    "max_connections": "60",
}
_WORKLOAD = Path(__file__).parent / "workload.sql"
_HERE = "SELECT pg_current_wal_insert_lsn()::text"


def checksum_query(schema: str, tables: Sequence[str], summed: Sequence[str]) -> str:
    """Says the same to PostgreSQL and to Spark, where the schema is a namespace."""
    sums = "".join(f", sum({column}) AS {column}_sum" for column in summed)
    each = (f"SELECT '{table}' AS name, count(*) AS n{sums} FROM {schema}.{table}" for table in tables)
    return " UNION ALL ".join(each) + " ORDER BY name"


@dataclass(frozen=True)
class Backlog:
    """Changes that wait in the slots."""

    changes: int
    inside: Lsn  # within the last transaction: who is beyond it has all of them
    end: Lsn  # after the last transaction


@dataclass(frozen=True)
class Address:
    """Where every contestant connects to."""

    host: str
    port: int
    password_file: Path
    user: str = SUPERUSER


class SourceDatabase:
    """One database with the tables of workload.sql."""

    def __init__(self, name: str, address: Address, conn: psycopg.Connection) -> None:
        self.name = name
        self.address = address
        self.conn = conn
        self.define(_WORKLOAD)

    @property
    def dsn(self) -> str:
        """Without the password, which `environment` brings."""
        return self.conn.info.dsn

    def environment(self) -> dict[str, str]:
        """For programs that connect through libpq."""
        return {**os.environ, "PGPASSWORD": self.address.password_file.read_text()}

    def define(self, file: Path) -> None:
        """More tables, functions and procedures."""
        self.conn.execute(file.read_text().encode())

    def fill(self, rows: int, table: str = ORDERS, *, first: int = 1, made_by: str = "rows") -> None:
        query = sql.SQL("INSERT INTO bench.{} SELECT * FROM bench.{}(%s, %s)")
        self.conn.execute(query.format(sql.Identifier(table), sql.Identifier(made_by)), [first, first + rows - 1])

    def create_slot(self, name: str) -> None:
        self.conn.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [name])

    def change(self, changes: int, *, newest: int) -> Backlog:
        """Many transactions of 1,000 changes."""
        self.conn.execute("SET synchronous_commit = off")  # only to load faster
        row = self.conn.execute("CALL bench.change(%s, %s, NULL)", [changes, newest]).fetchone()
        self.conn.execute("RESET synchronous_commit")
        return self._backlog(changes, str(row[0] if row else ""))

    def insert_at_once(self, rows: int) -> Backlog:
        """One transaction of that many inserts."""
        with self.conn.transaction():
            self.fill(rows)
            inside = self._one(_HERE)
        return self._backlog(rows, str(inside))

    def update_one(self, number: int) -> Lsn:
        """Changes one row; the position is within that transaction, which is committed when this returns."""
        with self.conn.transaction():
            self._execute("UPDATE bench.{} SET amount = amount + 1, status = 'one' WHERE id = %s", ORDERS, number)
            return Lsn.parse(str(self._one(_HERE)))

    def touch_side(self, first: int, rows: int) -> Lsn:
        """Inserts, updates and deletes in the side table, in one transaction; gives a position within it."""
        with self.conn.transaction():
            self.fill(rows, SIDE, first=first)
            self._execute("UPDATE bench.{} SET amount = amount + 1 WHERE id %% 5 = 0", SIDE)
            self._execute("DELETE FROM bench.{} WHERE id %% 10 = 1", SIDE)
            return Lsn.parse(str(self._one(_HERE)))

    def settle(self) -> None:
        """Does now what vacuum and checkpoints would do during the measurement."""
        self.conn.execute("VACUUM (ANALYZE)")
        self.conn.execute("CHECKPOINT")

    def checksums(self, tables: Sequence[str], summed: Sequence[str]) -> list[str]:
        """Rows and sums of each table, to be compared with `Pipeline.checksums`."""
        rows = self.conn.execute(checksum_query("bench", tables, summed).encode()).fetchall()
        return [" ".join(str(value) for value in row) for row in rows]

    def drop_slots(self) -> None:
        self.conn.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            " WHERE database = current_database() AND NOT active"
        )

    def _backlog(self, changes: int, inside: str) -> Backlog:
        end = Lsn.parse(str(self._one(_HERE)))
        # Something beyond the end, so that pg_recvlogical sees at once that it is there.
        self.touch_side(first=10_000_000, rows=10)
        return Backlog(changes, Lsn.parse(inside), end)

    def _execute(self, query: str, table: str, *values: object) -> None:
        self.conn.execute(sql.SQL(query).format(sql.Identifier(table)), values)

    def _one(self, query: str) -> object:
        row = self.conn.execute(query.encode()).fetchone()
        return row[0] if row else None


class Server:
    """The embedded server; contestants reach it over TCP, or all of them over the Unix socket."""

    def __init__(self, folder: Path, *, unix: bool) -> None:
        self._postgres = EmbeddedPostgres(folder, settings=_SETTINGS)
        self._unix = unix

    @property
    def version(self) -> str:
        with closing(psycopg.connect(self._postgres.conninfo())) as conn:
            return str(conn.info.parameter_status("server_version"))

    @contextmanager
    def running(self) -> Iterator[None]:
        with self._postgres:
            yield

    @contextmanager
    def database(self, name: str) -> Iterator[SourceDatabase]:
        """A new one, gone at the end of the block with its slots."""
        self._postgres.create_database(name)
        conninfo = self._postgres.conninfo(name, tcp=not self._unix)
        with closing(psycopg.connect(conninfo, autocommit=True)) as conn:
            database = SourceDatabase(name, self._address(conn), conn)
            yield database
            database.drop_slots()
        with closing(psycopg.connect(self._postgres.conninfo(), autocommit=True)) as conn:
            conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _address(self, conn: psycopg.Connection) -> Address:
        return Address(conn.info.host, conn.info.port, self._postgres.folder / "password")
