"""Connections to the source: ordinary ones for queries, replication ones for the slot and the stream.

Both speak the same text: what decides how a value looks as text is pinned for the session, so that the first copy
and the stream agree, whatever the server's or the role's defaults are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq.abc import PGconn

from icestream.config.conninfo import address
from icestream.config.refusals import is_refusal, reason_in
from icestream.errors import SourceError, SourceForbidden, SourceUnavailable

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

PINNED_SETTINGS: Final = {
    "datestyle": "ISO",
    "intervalstyle": "iso_8601",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "3",
    # Rows that a policy hides would be missing without a word; with this, the server refuses the query.
    "row_security": "off",
}
_NO_TIMEOUTS: Final = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")

# A peer that vanished without a word is noticed within a minute or so, also by the side that only listens.
_DEFAULTS: Final = {
    "connect_timeout": "10",
    "application_name": "icestream",
    "keepalives_idle": "20",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}

_NO_REPLICATION: Final = ("to start WAL sender", "to start walsender", "to initiate streaming replication")
_POOLER: Final = ("unsupported startup parameter", "unsupported pkt type", "pgbouncer", "bouncer config")
_TOO_MANY: Final = ("too many clients", "too many connections", "connection slots", "max_wal_senders")

# psycopg counts these among internal errors, but they only say that we were paused for too long.
TIMEOUTS: Final = (psycopg.errors.IdleInTransactionSessionTimeout, psycopg.errors.TransactionTimeout)

_CHECK_SETTINGS: Final = "check `source.postgres`"
_CHECK_SERVER: Final = "check that the server runs and can be reached from here, and `source.postgres`"


def connect(conninfo: str) -> Connection:
    """An ordinary connection in autocommit mode.

    Raises SourceUnavailable when trying again can help, SourceError when a person has to change something.
    """
    try:
        return psycopg.connect(pinned(conninfo), autocommit=True, prepare_threshold=None)
    except psycopg.OperationalError as err:
        raise _failure(err, conninfo) from err


class _ForReplication(psycopg.Connection[tuple[Any, ...]]):
    """Only made to connect, which psycopg does without holding up other threads."""

    def __del__(self, *_: object) -> None:
        """No warning: the `pgconn` lives on without it."""


def connect_replication(conninfo: str) -> PGconn:
    """A replication connection to one database. No query may run on it once streaming has begun.

    Raises as `connect` does.
    """
    try:
        pgconn = _ForReplication.connect(pinned(conninfo), replication="database").pgconn
    except psycopg.OperationalError as err:
        raise _failure(err, conninfo) from err
    pgconn.nonblocking = 0
    return pgconn


@contextmanager
def querying() -> Iterator[None]:
    """Turns psycopg's errors of a query into ours."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as err:
        raise SourceForbidden(
            f"a privilege is missing in the source: {err.diag.message_primary}",
            hint="grant it to the user of `source.postgres`",
        ) from err
    except (psycopg.OperationalError, psycopg.InterfaceError, *TIMEOUTS) as err:
        reason = err.diag.message_primary or "the connection was lost"
        raise SourceUnavailable(f"the source does not answer: {reason}") from err


def connect_failure(text: str, where: str = "") -> SourceError:
    """What a refused connection means. One in another language is tried again, with the server's words in the log."""
    at = f" ({where})" if where else ""
    reason = reason_in(text)
    if any(phrase in text for phrase in _POOLER):
        return SourceError(
            f"a connection pooler (PgBouncer) stands before the source: {reason}",
            hint="name the server itself in `source.postgres`: a replication slot needs a session of its own",
        )
    if any(phrase in text for phrase in _NO_REPLICATION):
        return SourceError(
            f"the user may not replicate: {reason}", hint="run `ALTER ROLE <user> REPLICATION` as a superuser"
        )
    if any(phrase in text for phrase in _TOO_MANY) or not is_refusal(text):
        return SourceUnavailable(f"the source cannot be reached{at}: {reason}", hint=_CHECK_SERVER)
    return SourceError(f"the source refuses the connection{at}: {reason}", hint=_CHECK_SETTINGS)


def without_timeouts(conn: Connection) -> None:
    """For a session that has to stay in one transaction as long as a first copy takes."""
    names = list(_NO_TIMEOUTS)
    if conn.info.server_version >= 170000:
        names.append("transaction_timeout")
    with querying():
        for name in names:
            conn.execute("SELECT set_config(%s, '0', false)", (name,))


def pinned(conninfo: str) -> str:
    """The conninfo with everything set that both roads have to agree on."""
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(conninfo).items() if value is not None}
    except psycopg.ProgrammingError:
        # libpq's text quotes the conninfo, and with it the password.
        raise SourceError("the address of the source is not a PostgreSQL conninfo", hint=_CHECK_SETTINGS) from None
    settings = " ".join(f"-c {name}={value}" for name, value in PINNED_SETTINGS.items())
    options = f"{given.pop('options', '')} {settings}".strip()
    return make_conninfo(**{**_DEFAULTS, **given, "options": options, "client_encoding": "UTF8"})


def _failure(err: psycopg.OperationalError, conninfo: str) -> SourceError:
    return connect_failure(str(err), address(conninfo_to_dict(conninfo)))
