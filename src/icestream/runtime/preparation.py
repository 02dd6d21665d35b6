"""What has to be right before a pipeline may run."""

from __future__ import annotations

import logging
from pathlib import Path

from icestream.config.settings import Settings
from icestream.errors import PreflightError
from icestream.observe.logs import fields
from icestream.runtime.checks import check_source, is_fatal
from icestream.runtime.spark_checks import check_object_store
from icestream.state.database import Database
from icestream.state.migrate import migrate
from icestream.verify.findings import Finding

log = logging.getLogger(__name__)

_SQLITE = "jdbc:sqlite:"


def prepare(settings: Settings, db: Database) -> None:
    """Checks the source and brings the state schema up to date. Raises PreflightError with everything that is wrong."""
    require_fit([*check_object_store(settings), *check_source(settings)])
    make_warehouse(settings)
    migrate(db)


def make_warehouse(settings: Settings) -> None:
    """The folder of a local warehouse; SQLite, unlike an object store, does not make it by itself."""
    folder = settings.sink.local_warehouse
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise PreflightError(
            f"the warehouse folder {folder} cannot be made: {err.strerror}", hint="check `sink.warehouse`"
        ) from err


def require_warehouse(settings: Settings) -> None:
    """For commands that only look: a catalog on SQLite whose folder is not there has nothing to show."""
    uri = settings.sink.catalog_properties().get("uri", "")
    if not uri.startswith(_SQLITE):
        return
    file = Path(uri.removeprefix(_SQLITE).partition("?")[0])
    if not file.parent.is_dir():
        raise PreflightError(
            f"there is no warehouse yet: the folder {file.parent} of its catalog does not exist",
            hint="check `sink.warehouse`, or run `icestream run` first, which makes it",
        )


def require_fit(findings: list[Finding]) -> None:
    fatal = [finding for finding in findings if is_fatal(finding)]
    for finding in findings:
        if finding not in fatal:
            log.warning("preflight", extra=fields(finding=str(finding), hint=finding.hint))
    if fatal:
        raise PreflightError(_message(fatal), hint=_hint(fatal))


def _message(findings: list[Finding]) -> str:
    if len(findings) == 1:
        return str(findings[0])
    lines = [f"  - {finding}" + (f"\n    hint: {finding.hint}" if finding.hint else "") for finding in findings]
    return "\n".join([f"{len(findings)} things stand in the way:", *lines])


def _hint(findings: list[Finding]) -> str | None:
    return findings[0].hint if len(findings) == 1 else "`icestream check` shows them again"
