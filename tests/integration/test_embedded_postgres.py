"""Our own PostgreSQL: one folder, data that survives, a password over TCP."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from icestream.embedded.postgres import EmbeddedPostgres
from icestream.errors import EnvironmentMissing


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="icestream postgres's ü") as name:
        yield Path(name) / "server"


def test_its_whole_life(folder: Path) -> None:
    with EmbeddedPostgres(folder, settings={"fsync": "off", "application_name": "it's \\ set"}) as server:
        assert server.pid is not None
        server.create_database("shop")
        with psycopg.connect(server.conninfo("shop", tcp=True)) as conn:
            conn.execute("CREATE TABLE kept AS SELECT 1 AS n")
            assert conn.execute("SHOW wal_level").fetchone() == ("logical",)
            assert conn.execute("SHOW server_encoding").fetchone() == ("UTF8",)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(make_conninfo(server.conninfo(tcp=True), password="wrong"))

        found = EmbeddedPostgres(folder)
        found.start()
        assert (found.pid, found.port) == (server.pid, server.port)

        server.restart(crash=True)
        assert found.pid == server.pid
        with psycopg.connect(server.conninfo("shop")) as conn:
            assert conn.execute("SELECT n FROM kept").fetchone() == (1,)
            assert conn.execute("SELECT reset_val FROM pg_settings WHERE name = 'application_name'").fetchone()
    server.stop()
    assert EmbeddedPostgres(folder).pid is None


def test_a_server_that_cannot_start_says_where_to_look(folder: Path) -> None:
    with pytest.raises(EnvironmentMissing, match="did not start") as caught:
        EmbeddedPostgres(folder, settings={"fsync": "off", "no_such_setting": "1"}).start()
    assert "server.log" in str(caught.value.hint)


def test_a_long_folder_name_still_gets_a_socket(folder: Path) -> None:
    with EmbeddedPostgres(folder / ("x" * 120), settings={"fsync": "off"}) as server:
        psycopg.connect(server.conninfo()).close()
