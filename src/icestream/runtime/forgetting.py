"""Giving up a group that reads the log."""

from __future__ import annotations

from icestream.config.settings import Settings
from icestream.errors import SettingsError, StateError
from icestream.model.table import TableState
from icestream.state.database import Database
from icestream.state.groups import Groups
from icestream.state.migrate import require_current
from icestream.state.tables import Tables


def forget_group(db: Database, settings: Settings, group: str) -> None:
    """Staged files no longer wait for the group. Refused for capture's own group, and while it has live workers."""
    require_current(db)
    groups = Groups(db, settings.pipeline)
    names = groups.names()
    if group not in names:
        raise SettingsError(
            f"pipeline {settings.pipeline!r} has no group {group!r}",
            hint=f"its groups are {', '.join(names) or 'not known yet: start it once'}",
        )
    rows = Tables(db, settings.pipeline, group).all()
    if any(row.target_by == "capture" and row.state is not TableState.REMOVED for row in rows):
        raise StateError(
            f"group {group!r} is that of capture, which needs its tables",
            hint="run `icestream cleanup` to give the whole pipeline up",
        )
    groups.remove(group)
