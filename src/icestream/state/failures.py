"""What a failure of the state database means: come back later, or a person has to act."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from icestream.config.refusals import is_refusal, reason_in
from icestream.errors import StateError, StateLimit, StateUnavailable, StateVersionMismatch

MIGRATE_HINT = "run `icestream migrate-coord`"

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
    reason = reason_in(str(err))
    if isinstance(err, psycopg.ProgrammingError) or is_refusal(str(err)):
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
