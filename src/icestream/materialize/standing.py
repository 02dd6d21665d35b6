"""Whether a table's own cursor and the log still fit together. Pure; anything doubtful parks the table."""

from __future__ import annotations

from dataclasses import dataclass

from icestream.errors import TableParked
from icestream.model.cursor import Cursor
from icestream.model.position import Lsn


@dataclass(frozen=True)
class LogStanding:
    """The log of one table as the state knows it."""

    epoch: str
    first_offset: int  # of the oldest entry that is still there
    next_offset: int
    position: int  # of the newest commit that is in the log


def require_fitting(table: str, cursor: Cursor | None, log: LogStanding) -> Cursor:
    """The cursor, if the log continues exactly where the table stands. Raises TableParked."""
    problem = _problem(cursor, log)
    if cursor is None or problem is not None:
        raise TableParked(f"{table}: {problem}", hint=f"icestream resync {table}")
    return cursor


def _problem(cursor: Cursor | None, log: LogStanding) -> str | None:
    if cursor is None:
        return (
            "the table has no cursor of this pipeline, neither in a snapshot nor in its properties; "
            "how far it has come can't be known"
        )
    if cursor.epoch != log.epoch:
        return (
            f"the table follows epoch {cursor.epoch} of the source, the log is epoch {log.epoch}: "
            "the slot or the state was made anew, changes in between are lost"
        )
    if cursor.offset > log.next_offset:
        return f"the table is at offset {cursor.offset}, beyond the log's end {log.next_offset}: the state is older"
    if cursor.position > max(log.position, cursor.copied_at):
        return f"the table is at {cursor.lsn}, the log ends at {Lsn(log.position)}: the state is older"
    if cursor.offset < log.first_offset:
        return f"the table is at offset {cursor.offset}, the log starts at {log.first_offset}: changes are missing"
    return None
