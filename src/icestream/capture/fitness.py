"""What the preflight found at the start may change while changes are streamed: it is repeated."""

from __future__ import annotations

import logging
from typing import TypeAlias

from icestream.config.settings import Settings
from icestream.observe.logs import fields
from icestream.sources.postgres.connection import Connection
from icestream.state.tables import Tables
from icestream.verify.facts import gather
from icestream.verify.findings import Finding
from icestream.verify.preflight import preflight

log = logging.getLogger(__name__)

_Kind: TypeAlias = tuple[str | None, str | None]


class Fitness:
    """Each finding is told once, when it comes, and once more when it is gone. Those of the first look are known."""

    def __init__(self, settings: Settings, tables: Tables) -> None:
        self._settings = settings
        self._tables = tables
        self._known: dict[_Kind, Finding] | None = None

    def look(self, conn: Connection) -> None:
        facts = gather(conn, self._settings, self._tables.all(), is_streaming=True)
        found = {_kind(finding): finding for finding in preflight(facts)}
        known = found if self._known is None else self._known
        for finding in (finding for kind, finding in found.items() if kind not in known):
            log.warning("source is not what it was", extra=fields(finding=str(finding), hint=finding.hint))
        for finding in (finding for kind, finding in known.items() if kind not in found):
            log.info("source is as it was again", extra=fields(finding=str(finding)))
        self._known = found


def _kind(finding: Finding) -> _Kind:
    """The same for a finding that has only other numbers in it now."""
    return finding.hint, finding.why
