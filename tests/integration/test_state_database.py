"""Connections of the state database: what each failure becomes, and that they come back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from icestream.errors import Retry, StateError, StateLimit, StateUnavailable, StateVersionMismatch
from icestream.state.database import Database
from support.postgres import PostgresServer
from support.proxy import COMMIT, Proxy
from support.state import SCHEMA
from support.waiting import wait_for


@pytest.fixture
def db(database: str) -> Database:
    return Database(database, SCHEMA)


def one(db: Database) -> object:
    row = db.fetch_one("SELECT 1 AS one")
    return row and row["one"]


def test_a_wrong_password_is_told_at_once_and_not_retried(database: str) -> None:
    with pytest.raises(StateError, match='password authentication failed for user "postgres"') as caught:
        one(Database(make_conninfo(database, password="wrong-secret"), SCHEMA))
    assert caught.value.retry is Retry.NEVER
    assert caught.value.hint
    assert "wrong-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [("dbname=nope", 'database "nope" does not exist'), ("password=''", "no password supplied")],
)
def test_what_the_server_refuses_for_good_is_not_retried(database: str, change: str, message: str) -> None:
    with pytest.raises(StateError, match=message) as caught:
        one(Database(f"{database} {change}", SCHEMA))
    assert caught.value.retry is Retry.NEVER


def test_a_server_that_is_not_there_is_retried(database: str) -> None:
    with pytest.raises(StateUnavailable, match=r"cannot be reached \(host .*\): Connection refused"):
        one(Database(make_conninfo(database, port=1), SCHEMA))


def test_an_address_that_cannot_be_read_is_told_without_its_text() -> None:
    with pytest.raises(StateError, match="neither a PostgreSQL URL nor a conninfo") as caught:
        Database("host=x password=top secret", SCHEMA)
    assert caught.value.__cause__ is None
    assert "secret" not in str(caught.value)


def test_the_address_is_not_shown(db: Database) -> None:
    assert repr(db) == "Database(schema='_pg2iceberg')"


def test_a_missing_privilege_names_the_object(db: Database) -> None:
    db.execute("CREATE TABLE public.closed ()")
    with pytest.raises(StateError, match="permission denied for table closed") as caught, db.transaction() as tx:
        tx.execute("SET LOCAL ROLE pg_monitor")
        tx.fetch("SELECT FROM public.closed")
    assert caught.value.retry is Retry.NEVER


def test_a_read_only_server_is_retried(db: Database) -> None:
    with pytest.raises(StateUnavailable, match="read-only"), db.transaction() as tx:
        tx.execute("SET TRANSACTION READ ONLY")
        tx.execute("CREATE SCHEMA x")


def test_what_no_server_takes_is_not_retried(db: Database) -> None:
    with pytest.raises(StateLimit, match="index row") as caught, db.transaction() as tx:
        tx.execute("CREATE TEMPORARY TABLE short (text text STORAGE EXTERNAL PRIMARY KEY)")
        tx.execute("INSERT INTO short VALUES (repeat('x', 5000))")
    assert caught.value.retry is Retry.NEVER
    assert not isinstance(caught.value, StateUnavailable)


def test_a_missing_schema_leads_to_the_migration(db: Database) -> None:
    with pytest.raises(StateVersionMismatch) as caught:
        db.fetch("SELECT FROM {schema}.tables")
    assert caught.value.hint == "run `icestream migrate-coord`"


def test_a_block_that_raises_is_rolled_back(db: Database) -> None:
    with pytest.raises(KeyError), db.transaction() as tx:
        tx.execute("CREATE SCHEMA {schema}")
        raise KeyError
    with db.transaction() as tx:
        tx.execute("CREATE SCHEMA {schema}")


def test_transactions_are_durable_and_short_whatever_the_defaults_are(db: Database, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as admin:
        name = admin.info.dbname
        admin.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = serializable")
    with db.transaction() as tx:
        row = tx.fetch_one(
            "SELECT current_setting('synchronous_commit') AS durable, current_setting('lock_timeout') AS lock,"
            " current_setting('transaction_isolation') AS isolation"
        )
    assert row == {"durable": "on", "lock": "30s", "isolation": "read committed"}


@pytest.mark.parametrize("crash", [False, True])
def test_it_connects_again_after_a_restart(db: Database, postgres: PostgresServer, crash: bool) -> None:
    assert one(db) == 1
    postgres.restart(crash=crash)
    assert one(db) == 1


def test_it_is_unavailable_while_the_server_is_down_and_back_at_once(db: Database, postgres: PostgresServer) -> None:
    assert one(db) == 1
    postgres.stop()
    for _ in range(3):
        with pytest.raises(StateUnavailable):
            one(db)
    postgres.start()
    assert one(db) == 1


def test_a_connection_lost_inside_a_transaction_is_unavailable(db: Database, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as admin, pytest.raises(StateUnavailable), db.transaction() as tx:
        row = tx.fetch_one("SELECT pg_backend_pid() AS pid")
        assert row is not None
        admin.execute("SELECT pg_terminate_backend(%s, 10000)", [row["pid"]])
        tx.execute("SELECT 1")
    assert one(db) == 1


def test_a_commit_without_answer_is_unavailable(database: str, proxy: Proxy) -> None:
    db = Database(proxy.conninfo(database), SCHEMA)
    with pytest.raises(StateUnavailable), db.transaction() as tx:
        tx.execute("CREATE SCHEMA {schema}")
        proxy.lose_answer(COMMIT)
    assert db.fetch_one("SELECT to_regnamespace(%(name)s)::text AS name", {"name": SCHEMA}) == {"name": SCHEMA}
    db.close()


def test_many_threads_share_few_connections(db: Database, database: str) -> None:
    together = threading.Barrier(8)

    def backend(_: int) -> object:
        with db.transaction() as tx:
            row = tx.fetch_one("SELECT pg_backend_pid() AS pid")
            together.wait(timeout=30)
            return row and row["pid"]

    with ThreadPoolExecutor(40) as threads:
        backends = list(threads.map(backend, range(40)))
    assert len(set(backends)) == 8


def test_a_closed_database_leaves_no_connection(db: Database, database: str) -> None:
    one(db)
    db.close()
    with psycopg.connect(database, autocommit=True) as admin:
        ours = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'icestream'"
        )
        wait_for(lambda: admin.execute(ours).fetchone() == (0,), what="the connections to end")
