"""The state database: connections, transactions, and statements that name the coordination schema as `{schema}`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeAlias

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from icestream.config.conninfo import address
from icestream.errors import StateError
from icestream.state.failures import connect_failure, translated
from icestream.state.pool import Connection, Pool, Row

Params: TypeAlias = Mapping[str, Any]

_POOL_SIZE = 8
_CONNECTION = {
    "application_name": "icestream",
    "client_encoding": "utf8",
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
# psycopg reads timestamps in this form only, and a database or role may have another default.
_TEXT_FORMS = "-c datestyle=ISO -c timezone=UTC"
# Durable when it returns, whatever the server's default is; and the locks of a client that vanished are freed soon.
_BEGIN = """
SELECT set_config('synchronous_commit', 'on', true),
       set_config('idle_in_transaction_session_timeout', '30s', true),
       set_config('lock_timeout', '30s', true)
"""


class Transaction:
    """Statements of one transaction."""

    def __init__(self, conn: Connection, render: Callable[[str], bytes]) -> None:
        self._conn = conn
        self._render = render

    def execute(self, query: str, params: Params | None = None) -> int:
        """Runs a statement; gives the number of rows it touched."""
        return self._conn.execute(self._render(query), params).rowcount

    def fetch(self, query: str, params: Params | None = None) -> list[Row]:
        return self._conn.execute(self._render(query), params).fetchall()

    def fetch_one(self, query: str, params: Params | None = None) -> Row | None:
        return self._conn.execute(self._render(query), params).fetchone()


class Database:
    """Safe to use from many threads. Connects when it is first needed, and again after an outage.

    Every method raises StateUnavailable when the database cannot be reached now, StateError when it refuses us.
    """

    def __init__(self, conninfo: str, schema: str) -> None:
        self.schema = schema
        self._options = _parsed(conninfo)
        self._pool = Pool(self._connect, size=_POOL_SIZE)
        self._render = lru_cache(maxsize=None)(self._rendered)

    def __repr__(self) -> str:
        return f"Database(schema={self.schema!r})"

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Commits at the end of the block; rolls back if the block raises.

        StateUnavailable from the end of the block means that the outcome of the commit is not known.
        """
        with translated(), self._pool.lend() as conn, conn.transaction():
            conn.execute(_BEGIN)
            yield Transaction(conn, self._render)

    def execute(self, query: str, params: Params | None = None) -> int:
        """One statement in a transaction of its own; gives the number of rows it touched."""
        with self._single() as statement:
            return statement.execute(query, params)

    def fetch(self, query: str, params: Params | None = None) -> list[Row]:
        with self._single() as statement:
            return statement.fetch(query, params)

    def fetch_one(self, query: str, params: Params | None = None) -> Row | None:
        with self._single() as statement:
            return statement.fetch_one(query, params)

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def _single(self) -> Iterator[Transaction]:
        with translated(), self._pool.lend() as conn:
            yield Transaction(conn, self._render)

    def _connect(self) -> Connection:
        try:
            # No prepared statements: a pooler between us and the server would hand them to other sessions.
            conn = psycopg.connect(**self._options, autocommit=True, prepare_threshold=None, row_factory=dict_row)
        except psycopg.Error as err:
            raise connect_failure(err, address(self._options)) from err
        # Conditional updates wait for each other and look again; under a stricter default they would fail instead.
        conn.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return conn

    def _rendered(self, query: str) -> bytes:
        return sql.SQL(query).format(schema=sql.Identifier(self.schema)).as_bytes(None)


def _parsed(conninfo: str) -> dict[str, Any]:
    try:
        given = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        raise StateError(
            "the address of the state database is neither a PostgreSQL URL nor a conninfo",
            hint="check `state.postgres_url`",
        ) from None  # its text quotes parts of the conninfo, perhaps of the password
    return {**_CONNECTION, **given, "options": f"{given.get('options') or ''} {_TEXT_FORMS}".strip()}
