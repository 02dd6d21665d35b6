"""Asking for tables to be copied anew."""

from __future__ import annotations

from collections.abc import Sequence

from icestream.config.settings import Settings
from icestream.errors import SettingsError
from icestream.model.table import TableState
from icestream.state.database import Database
from icestream.state.migrate import require_current
from icestream.state.tables import TableRow, Tables


def request_copies(db: Database, settings: Settings, names: Sequence[str]) -> list[str]:
    """Marks the tables for a new first copy and gives their keys; all of them or, if a name is unknown, none.

    Capture offers a snapshot for them as soon as it sees the mark, so a stopped pipeline does it when it starts.
    """
    require_current(db)
    tables = Tables(db, settings.pipeline, settings.state.group)
    keys = keys_of(tables.all(), names)
    for key in keys:
        tables.request_copy(key)
    return keys


def keys_of(rows: Sequence[TableRow], names: Sequence[str]) -> list[str]:
    """The tables that a person named, by source name or Iceberg name. Raises SettingsError if one is none of ours."""
    rows = [row for row in rows if row.state is not TableState.REMOVED]
    known = {name: row.key for row in rows for name in (str(row.source), row.target.key)}
    known |= {row.key: row.key for row in rows}
    unknown = [name for name in names if name not in known]
    if unknown:
        tables = sorted(row.target.key for row in rows)
        raise SettingsError(
            f"not a table of this pipeline: {', '.join(unknown)}",
            hint=f"its tables are {', '.join(tables) or 'not known yet: start it once'}",
        )
    return list(dict.fromkeys(known[name] for name in names))
