"""Bringing parked tables back to where they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icestream.config.settings import Settings
from icestream.errors import StateError
from icestream.model.table import TableState
from icestream.runtime.resync import keys_of
from icestream.state.cursors import Cursors
from icestream.state.database import Database
from icestream.state.identity import Identity
from icestream.state.log_entries import LogEntries
from icestream.state.migrate import require_current
from icestream.state.tables import TableRow, Tables


@dataclass(frozen=True)
class Resumed:
    key: str
    waiting: int  # changes that it has not seen yet


def resume_tables(db: Database, settings: Settings, names: Sequence[str]) -> list[Resumed]:
    """Lets parked tables go on from where they were; all of them, or none if one can't.

    Raises StateError with the way out where changes are missing by now. What made a worker park the table has to be
    put right first: otherwise it parks it again.
    """
    require_current(db)
    tables = Tables(db, settings.pipeline, settings.state.group)
    rows = {row.key: row for row in tables.all()}
    found = [_waiting(db, settings, rows[key]) for key in keys_of(list(rows.values()), names)]
    for resumed in found:
        if not tables.resume(resumed.key):
            raise _refusal(resumed.key, "something else was decided about it meanwhile")
    return found


def _waiting(db: Database, settings: Settings, row: TableRow) -> Resumed:
    """Raises unless the log still reaches back to the table's cursor."""
    if row.state is not TableState.PARKED:
        raise StateError(f"{row.key} is {row.state}, not parked", hint="run `icestream status`")
    if row.resumable_since is None:
        raise _refusal(row.key, f"changes are missing ({row.reason})")
    identity = Identity(db, settings.pipeline).load()
    stored = Cursors(db, settings.pipeline, settings.state.group).load(row.key)
    if stored is not None and (identity is None or stored.cursor.epoch != identity.epoch):
        raise _refusal(row.key, "its log began anew since it was parked")
    extent, offset = LogEntries(db, settings.pipeline).extent(row.key), stored.cursor.offset if stored else 0
    if offset < extent.first_offset:
        raise _refusal(row.key, f"it is at offset {offset}, and its log was given up to {extent.first_offset}")
    return Resumed(row.key, extent.next_offset - offset)


def _refusal(key: str, why: str) -> StateError:
    return StateError(f"{key} can't go on from where it was: {why}", hint=f"run `icestream resync {key}`")
