"""One PostgreSQL server for the whole run, and a fresh database for each test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from icestream.embedded.postgres import EmbeddedPostgres
from support.waiting import wait_for

SETTINGS = {
    "wal_level": "logical",
    "fsync": "off",
    "max_connections": "200",
    "max_wal_senders": "40",
    "max_replication_slots": "40",
    "shared_buffers": "32MB",
    "wal_sender_timeout": "30s",
}
_SLOTS = "SELECT slot_name FROM pg_replication_slots WHERE database = %s"
_END_READERS = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = %s AND active"
_ACTIVE = "SELECT count(*) FROM pg_replication_slots WHERE database = %s AND active"


class PostgresServer:
    """Databases of the embedded server. A test that stops the server must start it again."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self.server = server
        self._numbers = count(1)

    def create_database(self, *, tcp: bool = True) -> str:
        """The conninfo of a new, empty database."""
        name = f"test_{next(self._numbers)}"
        self.server.create_database(name)
        return self.dsn(name, tcp=tcp)

    def drop_database(self, conninfo: str) -> None:
        """Also ends whoever still uses it, and drops its replication slots."""
        name = str(conninfo_to_dict(conninfo)["dbname"])
        with psycopg.connect(self.server.conninfo(), autocommit=True) as admin:
            admin.execute(_END_READERS, [name])
            wait_for(lambda: admin.execute(_ACTIVE, [name]).fetchone() == (0,), what=f"the slots of {name} to be free")
            for (slot,) in admin.execute(_SLOTS, [name]).fetchall():
                admin.execute("SELECT pg_drop_replication_slot(%s)", [slot])
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def dsn(self, dbname: str = "postgres", *, tcp: bool = True) -> str:
        return self.server.conninfo(dbname, tcp=tcp)

    def start(self) -> None:
        self.server.start()

    def stop(self, *, crash: bool = False) -> None:
        self.server.stop(crash=crash)

    def restart(self, *, crash: bool = False) -> None:
        self.server.restart(crash=crash)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    # Not pytest's own temporary folder: when root runs the tests, the server's OS user could not enter it.
    folder = Path(tempfile.mkdtemp(prefix="icestream-postgres-"))
    try:
        with EmbeddedPostgres(folder, settings=SETTINGS) as server:
            yield PostgresServer(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """The conninfo of a database of this test's own."""
    postgres.start()
    conninfo = postgres.create_database()
    yield conninfo
    postgres.start()
    postgres.drop_database(conninfo)
