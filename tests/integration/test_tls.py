"""Encrypted connections: verified in full, with an authority and a client certificate of one's own."""

from __future__ import annotations

from contextlib import closing

import pytest

from icestream.errors import SourceError
from icestream.sources.postgres.connection import connect, connect_replication
from icestream.sources.postgres.slot import identify_system
from icestream.state.database import Database
from support.tls import TlsProxy


def test_queries_and_the_stream_go_through_tls(database: str, tls: TlsProxy) -> None:
    with closing(connect(tls.conninfo(database))) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)
        assert conn.pgconn.ssl_in_use
    pgconn = connect_replication(tls.conninfo(database))
    try:
        assert pgconn.ssl_in_use
        assert identify_system(pgconn).identifier
    finally:
        pgconn.finish()


def test_the_state_goes_through_tls(database: str, tls: TlsProxy) -> None:
    with closing(Database(tls.conninfo(database), "_pg2iceberg")) as db:
        assert db.fetch_one("SELECT 1 AS one", {}) == {"one": 1}


@pytest.mark.parametrize("sslmode", ["require", "verify-ca"])
def test_weaker_modes_do_not_look_at_the_name(database: str, tls: TlsProxy, sslmode: str) -> None:
    with closing(connect(tls.conninfo(database, sslmode=sslmode, host="another.name"))) as conn:
        assert conn.pgconn.ssl_in_use


def test_verify_full_refuses_another_name(database: str, tls: TlsProxy) -> None:
    with pytest.raises(SourceError) as refused:
        connect(tls.conninfo(database, host="another.name"))
    assert "another.name" in str(refused.value)


def test_a_server_of_another_authority_is_refused(database: str, tls: TlsProxy) -> None:
    with pytest.raises(SourceError, match="certificate"):
        connect(tls.conninfo(database, sslrootcert=tls.other_authority))


def test_disable_does_not_get_through(database: str, tls: TlsProxy) -> None:
    with pytest.raises(SourceError):
        connect(tls.conninfo(database, sslmode="disable", connect_timeout=2))
