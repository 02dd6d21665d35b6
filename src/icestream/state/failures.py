"""What a failure of the state database means: come back later, or a person has to act."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from icestream.errors import StateError, StateLimit, StateUnavailable, StateVersionMismatch

MIGRATE_HINT = "run `icestream migrate-coord`"

# libpq gives no SQLSTATE for a refused connection, only text. A server that speaks another language is retried, and
# its own words are in the message.
_REFUSALS = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied",
    "not permitted to log in",
    "invalid connection option",
    "certificate verify failed",
    "does not match host name",
    "does not support SSL",
)

# psycopg counts these among internal errors, but they only say that we were paused for too long.
_TIMEOUTS = (errors.IdleInTransactionSessionTimeout, errors.TransactionTimeout)

# And these among operational ones, but no waiting helps: class 54, a value or a statement that is too large.
_LIMITS = (
    errors.ProgramLimitExceeded,
    errors.StatementTooComplex,
    errors.TooManyColumns,
    errors.TooManyArguments,
)


def connect_failure(err: psycopg.Error, where: str) -> StateError:
    reason = _last_clause(err)
    if isinstance(err, psycopg.ProgrammingError) or any(refusal in str(err) for refusal in _REFUSALS):
        return StateError(
            f"the state database refuses the connection ({where}): {reason}",
            hint="check `state.postgres_url` (or `source.postgres`, when it is not set)",
        )
    return StateUnavailable(
        f"the state database cannot be reached ({where}): {reason}",
        hint="check that the server runs and can be reached from here, and `state.postgres_url` (or `source.postgres`)",
    )


@contextmanager
def translated() -> Iterator[None]:
    """Turns psycopg's errors into ours. What is left untranslated is a mistake in our own SQL."""
    try:
        yield
    except errors.InsufficientPrivilege as err:
        raise StateError(
            f"a privilege is missing in the state database: {err.diag.message_primary}",
            hint="grant it, or let the owner of the coordination schema run Icestream",
        ) from err
    except (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn) as err:
        raise StateVersionMismatch(
            f"the coordination schema is not complete: {err.diag.message_primary}", hint=MIGRATE_HINT
        ) from err
    except errors.DependentObjectsStillExist as err:
        raise StateError(
            f"something that is not ours rests on the coordination schema: {err.diag.message_primary}",
            hint="drop that first (a view?), then run the command again",
        ) from err
    except _LIMITS as err:
        raise StateLimit(f"the state database can't hold something that large: {err.diag.message_primary}") from err
    except errors.ReadOnlySqlTransaction as err:
        raise StateUnavailable("the state database is read-only now (a standby?)") from err
    except (psycopg.OperationalError, psycopg.InterfaceError, *_TIMEOUTS) as err:
        reason = err.diag.message_primary or "the connection was lost"
        raise StateUnavailable(f"the state database does not answer: {reason}") from err


def _last_clause(err: psycopg.Error) -> str:
    """`password authentication failed for user "x"` out of libpq's lines about hosts and ports."""
    line = str(err).strip().splitlines()[0]
    return line.rpartition("failed: ")[2].removeprefix("FATAL:").strip()
