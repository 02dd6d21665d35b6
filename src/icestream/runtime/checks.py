"""Would it work? Each check looks at one thing, changes nothing, and says what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from icestream.config.settings import Settings
from icestream.errors import IcestreamError, Retry, StateError, StateVersionMismatch
from icestream.runtime.agreement_check import check_agreement
from icestream.runtime.catalog_check import check_catalog
from icestream.runtime.metrics_check import check_metrics
from icestream.runtime.opening import opened_source, opened_state
from icestream.runtime.spark_checks import check_jars, check_java, check_object_store
from icestream.runtime.storage_check import check_storage
from icestream.state.database import Database
from icestream.state.failures import MIGRATE_HINT
from icestream.state.migrate import require_current
from icestream.state.tables import TableRow, Tables
from icestream.verify.facts import SourceFacts, gather
from icestream.verify.findings import Finding, Severity, error
from icestream.verify.preflight import preflight

Check = Callable[[Settings], list[Finding]]

_MAY_CREATE = """
SELECT current_user AS role, current_database() AS database,
       has_database_privilege(current_database(), 'CREATE') OR
       coalesce((SELECT has_schema_privilege(oid, 'CREATE, USAGE') FROM pg_namespace WHERE nspname = %(schema)s), false)
           AS granted
"""


def check_all(settings: Settings) -> list[Finding]:
    """Everything `icestream check` has to say, errors first. What can't be reached is a finding like any other."""
    lake = (check_object_store, check_jars, check_java, check_catalog, check_storage)
    others: tuple[Check, ...] = (*lake, check_metrics)
    found = [*_check_databases(settings), *(finding for check in others for finding in _attempt(check, settings))]
    return sorted(dict.fromkeys(found), key=lambda finding: not is_fatal(finding))


def is_fatal(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR


def check_source(settings: Settings) -> list[Finding]:
    """Raises SourceUnavailable when the source can't be asked now, SourceError when it refuses us."""
    with opened_source(settings) as conn:
        facts = gather(conn, settings, _known_tables(settings))
    _require_answer(facts)
    return preflight(facts)


def check_state(settings: Settings) -> list[Finding]:
    with opened_state(settings) as db:
        try:
            require_current(db)
        except StateVersionMismatch as err:
            if err.hint != MIGRATE_HINT:
                return [error(str(err), err.hint)]
            return list(_missing_right_to_create(db))
    return []


def _check_databases(settings: Settings) -> list[Finding]:
    try:
        found = check_source(settings)
    except IcestreamError as err:
        found = [error(str(err), err.hint)]
        if settings.state.postgres_url is None:
            return found  # the state is there too, and the same would be said once more
    return [*found, *_attempt(check_state, settings), *_attempt(check_agreement, settings)]


def _attempt(check: Check, settings: Settings) -> list[Finding]:
    try:
        return check(settings)
    except IcestreamError as err:
        return [error(str(err), err.hint)]


def _known_tables(settings: Settings) -> list[TableRow]:
    """Nothing where there is no state yet; whether it can be reached is for another check to say."""
    with opened_state(settings) as db:
        try:
            require_current(db)
            return Tables(db, settings.pipeline).all()
        except StateError:
            return []


def _require_answer(facts: SourceFacts) -> None:
    """A replication connection that failed for now is no verdict on the source."""
    refusal = facts.role.replication_refusal
    if refusal is not None and refusal.retry is not Retry.NEVER:
        raise refusal


def _missing_right_to_create(db: Database) -> Iterator[Finding]:
    row = db.fetch_one(_MAY_CREATE, {"schema": db.schema})
    if row is not None and not row["granted"]:
        yield error(
            f"user {row['role']} may not create the coordination schema {db.schema!r} in database {row['database']}",
            f"run `GRANT CREATE ON DATABASE {row['database']} TO {row['role']}`, or set `state.postgres_url`",
        )
