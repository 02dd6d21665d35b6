"""Connections that fail on their way."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest

from icestream.errors import SourceUnavailable, StateUnavailable
from icestream.sources.postgres.connection import Connection, connect, connect_replication, querying
from icestream.sources.postgres.slot import identify_system
from icestream.state.database import Database
from support.proxy import Proxy
from support.waiting import wait_for

BOTH = pytest.mark.parametrize("connect_", [connect, connect_replication])


@BOTH
def test_one_broken_connection_is_tried_again(database: str, proxy: Proxy, connect_: Callable[[str], object]) -> None:
    proxy.lose_request(b"client_encoding")
    with pytest.raises(SourceUnavailable):
        connect_(proxy.conninfo(database))


@BOTH
def test_other_threads_go_on_while_a_server_does_not_answer(connect_: Callable[[str], object]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            with suppress(OSError):
                listener.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        with pytest.raises(SourceUnavailable) as caught:
            connect_(f"host=127.0.0.1 port={listener.getsockname()[1]} dbname=x user=x connect_timeout=30")
    assert "timeout" not in str(caught.value)


def test_a_replication_connection_waits_for_its_answers(database: str) -> None:
    pgconn = connect_replication(database)
    try:
        assert not pgconn.nonblocking
        assert identify_system(pgconn).identifier
    finally:
        pgconn.finish()


@pytest.mark.parametrize("setting", ["idle_in_transaction_session_timeout", "transaction_timeout"])
def test_a_transaction_that_was_paused_for_too_long_is_tried_again(
    database: str, state: Database, setting: str
) -> None:
    with psycopg.connect(database, autocommit=True) as watcher:
        with pytest.raises(StateUnavailable), state.transaction() as tx:
            row = tx.fetch_one("SELECT pg_backend_pid() AS pid", {})
            assert row is not None
            tx.execute(f"SELECT set_config('{setting}', '50ms', true)")
            wait_for(lambda: is_gone(watcher, row["pid"]), what="the server to end the session")
            tx.execute("SELECT 1")
        with pytest.raises(SourceUnavailable), connect(database) as conn, querying(), conn.transaction():
            conn.execute(f"SELECT set_config('{setting}', '50ms', true)".encode())
            wait_for(lambda: is_gone(watcher, conn.info.backend_pid), what="the server to end the session")
            conn.execute("SELECT 1")


def is_gone(watcher: Connection, pid: int) -> bool:
    return watcher.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone() is None
