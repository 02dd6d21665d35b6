"""A table of a group as the state holds it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from icestream.model.position import Lsn
from icestream.model.table import TableName, TableState, Target
from icestream.state.pool import Row

RESYNC_HINT = "run `icestream resync {table}` to copy it again"

# Who settles where a table goes: capture for the group of its own settings, else the workers of the group.
TargetBy: TypeAlias = Literal["capture", "workers"]

SELECT_TABLES = """
SELECT group_name, table_name, configured_schema, configured_name, source_schema, source_name, pg_oid, members,
       state, reason, hint, resumable_since, target::text, target_by, snapshot_complete, snapshot_lsn, snapshot_name,
       requested_lsn, copy_rows, completed_at, failures, last_failure, updated_at
FROM {schema}.tables
WHERE pipeline = %(pipeline)s AND (%(group)s::text IS NULL OR group_name = %(group)s)
"""


@dataclass(frozen=True)
class TableDefinition:
    """A table as the settings and the source's catalog describe it now.

    `configured` is the name in the settings, where the table has another one by now.
    """

    target: Target
    source: TableName
    pg_oid: int
    configured: TableName | None = None


@dataclass(frozen=True)
class TableRow:
    group: str
    key: str  # in the log, for all groups; the target's own name may be another one
    configured: TableName  # the name that the settings have for it
    source: TableName  # its name now
    pg_oid: int
    members: frozenset[int] | None  # the publication's entries by which it is sent; None: not noted yet
    state: TableState
    reason: str | None
    hint: str | None
    resumable_since: datetime | None  # parked then, and its log is kept for a while; None: only a new copy helps
    target: Target
    target_by: TargetBy | None  # None: not settled yet, `target` is what capture's settings say
    snapshot_complete: bool
    snapshot_lsn: Lsn | None  # where the offered or finished copy was cut
    snapshot_name: str | None  # only while COPYING
    requested_lsn: Lsn  # of the newest demand for another copy; 0: none was made
    copy_rows: int | None
    completed_at: datetime | None
    failures: int  # in a row
    last_failure: str | None
    updated_at: datetime


def table_row(row: Row) -> TableRow:
    return TableRow(
        group=row["group_name"],
        key=row["table_name"],
        configured=TableName(row["configured_schema"], row["configured_name"]),
        source=TableName(row["source_schema"], row["source_name"]),
        pg_oid=row["pg_oid"],
        members=None if row["members"] is None else frozenset(row["members"]),
        state=TableState(row["state"]),
        reason=row["reason"],
        hint=row["hint"],
        resumable_since=row["resumable_since"],
        target=msgspec.json.decode(row["target"], type=Target),
        target_by=row["target_by"],
        snapshot_complete=row["snapshot_complete"],
        snapshot_lsn=None if row["snapshot_lsn"] is None else Lsn(row["snapshot_lsn"]),
        snapshot_name=row["snapshot_name"],
        requested_lsn=Lsn(row["requested_lsn"]),
        copy_rows=row["copy_rows"],
        completed_at=row["completed_at"],
        failures=row["failures"],
        last_failure=row["last_failure"],
        updated_at=row["updated_at"],
    )
