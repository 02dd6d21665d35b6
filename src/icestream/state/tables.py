"""The replicated tables and where each stands in each group (`TableState` says who sets what)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from icestream.model.position import Lsn
from icestream.model.table import TableName, Target
from icestream.state.database import Database
from icestream.state.table_rows import RESYNC_HINT, SELECT_TABLES, TableDefinition, TableRow, table_row
from icestream.state.table_settling import settle_by_capture, settle_by_workers

__all__ = ["RESYNC_HINT", "TableDefinition", "TableRow", "Tables"]

# Rows that are not settled yet are nobody's business but that of `sync` and `adopt`.
_ALL = SELECT_TABLES + "AND target_by IS NOT NULL ORDER BY table_name, group_name"
_GET = SELECT_TABLES + "AND target_by IS NOT NULL AND table_name = %(table)s ORDER BY group_name LIMIT 1"
_UNSETTLED = SELECT_TABLES + "AND target_by IS NULL AND state <> 'removed' LIMIT 1"
# A table without copy begins at the snapshot's position, too, but has nothing to read there.
_OFFER_COPY = """
UPDATE {schema}.tables
SET state = CASE WHEN (target ->> 'skip_snapshot')::boolean THEN 'live' ELSE 'copying' END,
    snapshot_name = CASE WHEN NOT (target ->> 'skip_snapshot')::boolean THEN %(snapshot_name)s END,
    snapshot_lsn = %(position)s, updated_at = now()
WHERE pipeline = %(pipeline)s AND (%(group)s::text IS NULL OR group_name = %(group)s)
  AND state = 'pending' AND target_by IS NOT NULL AND table_name = ANY(%(tables)s) AND requested_lsn < %(position)s
RETURNING table_name
"""
_WITHDRAW_COPIES = """
UPDATE {schema}.tables
SET state = 'pending', snapshot_name = NULL, updated_at = now()
WHERE pipeline = %(pipeline)s AND (%(group)s::text IS NULL OR group_name = %(group)s) AND state = 'copying'
  AND (%(snapshots)s::text[] IS NULL OR snapshot_name = ANY(%(snapshots)s))
RETURNING table_name
"""
_GIVE_UP_COPY = """
UPDATE {schema}.tables
SET state = 'pending', snapshot_name = NULL, updated_at = now()
WHERE pipeline = %(pipeline)s AND (%(group)s::text IS NULL OR group_name = %(group)s) AND table_name = %(table)s
  AND state = 'copying' AND snapshot_lsn = %(position)s
"""
_COMPLETE_COPY = """
UPDATE {schema}.tables
SET state = 'live', reason = NULL, snapshot_complete = true, snapshot_lsn = %(position)s, snapshot_name = NULL,
    copy_rows = %(rows)s, completed_at = now(), failures = 0, last_failure = NULL, updated_at = now()
WHERE pipeline = %(pipeline)s AND (%(group)s::text IS NULL OR group_name = %(group)s) AND table_name = %(table)s
  AND state IN ('pending', 'copying') AND requested_lsn < %(position)s
"""
_PARK = """
UPDATE {schema}.tables
SET state = 'parked', reason = %(reason)s, hint = %(hint)s, snapshot_name = NULL, updated_at = now(),
    resumable_since = CASE WHEN %(keep_log)s AND state = 'live' THEN now() END
WHERE pipeline = %(pipeline)s AND (%(group)s::text IS NULL OR group_name = %(group)s) AND table_name = %(table)s
  AND state NOT IN ('parked', 'removed')
"""
_PARK_SEEN = f"""{_PARK}
  AND group_name = %(seen_group)s AND state = %(seen_state)s AND requested_lsn = %(seen_requested)s
  AND updated_at = %(seen_updated_at)s
"""
_RESUME = """
UPDATE {schema}.tables
SET state = 'live', reason = NULL, hint = NULL, resumable_since = NULL, failures = 0, last_failure = NULL,
    updated_at = now()
WHERE pipeline = %(pipeline)s AND (%(group)s::text IS NULL OR group_name = %(group)s) AND table_name = %(table)s
  AND state = 'parked' AND resumable_since IS NOT NULL
"""
_GIVE_UP_LOG = """
UPDATE {schema}.tables
SET resumable_since = NULL, reason = reason || '; ' || %(reason)s, hint = %(hint)s, updated_at = now()
WHERE pipeline = %(pipeline)s AND (%(group)s::text IS NULL OR group_name = %(group)s) AND table_name = %(table)s
  AND state = 'parked' AND resumable_since IS NOT NULL
"""
# The log may lag behind a copy that was made before: neither may be taken for what is asked for now.
_REQUEST_COPY = """
UPDATE {schema}.tables
SET state = 'pending', reason = %(reason)s, hint = NULL, resumable_since = NULL, snapshot_name = NULL,
    snapshot_complete = false,
    requested_lsn = greatest((SELECT lsn FROM {schema}.flushed_lsn WHERE pipeline = %(pipeline)s), snapshot_lsn, 0),
    updated_at = now()
WHERE pipeline = %(pipeline)s AND (%(group)s::text IS NULL OR group_name = %(group)s) AND table_name = %(table)s
  AND state <> 'removed'
"""
_REPLACE = """
UPDATE {schema}.tables
SET state = 'parked', reason = %(reason)s, hint = %(hint)s, resumable_since = NULL, snapshot_name = NULL,
    pg_oid = %(pg_oid)s, source_schema = configured_schema, source_name = configured_name, updated_at = now()
WHERE pipeline = %(pipeline)s AND (%(group)s::text IS NULL OR group_name = %(group)s) AND table_name = %(table)s
  AND state <> 'removed'
"""
# `updated_at` stays: these are notes, not decisions.
_NOTE_NAME = """
UPDATE {schema}.tables
SET source_schema = %(schema)s, source_name = %(name)s
WHERE pipeline = %(pipeline)s AND (%(group)s::text IS NULL OR group_name = %(group)s) AND table_name = %(table)s
"""
# A snapshot from before the table was in the publication by these entries would leave a gap to the stream.
_NOTE_MEMBERS = """
UPDATE {schema}.tables
SET members = %(members)s,
    requested_lsn = CASE WHEN members IS NULL THEN requested_lsn ELSE greatest(requested_lsn, %(position)s) END
WHERE pipeline = %(pipeline)s AND group_name = %(seen_group)s AND table_name = %(table)s AND state = %(seen_state)s
"""
_NOTE_FAILURE = """
UPDATE {schema}.tables
SET failures = failures + 1, last_failure = %(text)s
WHERE pipeline = %(pipeline)s AND (%(group)s::text IS NULL OR group_name = %(group)s) AND table_name = %(table)s
"""
_CLEAR_FAILURES = """
UPDATE {schema}.tables
SET failures = 0, last_failure = NULL
WHERE pipeline = %(pipeline)s AND (%(group)s::text IS NULL OR group_name = %(group)s) AND table_name = %(table)s
  AND failures > 0
"""


class Tables:
    """The tables of one group; without a group (as capture has it), those of all groups at once.

    Every change of state names the states it may start from, so a late caller cannot undo a newer decision.
    """

    def __init__(self, db: Database, pipeline: str, group: str | None = None) -> None:
        self._db = db
        self._pipeline = pipeline
        self._group = group
        self._scope = {"pipeline": pipeline, "group": group}

    def all(self) -> list[TableRow]:
        return [table_row(row) for row in self._db.fetch(_ALL, self._scope)]

    def get(self, key: str) -> TableRow | None:
        """Without a group: the row of the first one."""
        row = self._db.fetch_one(_GET, {**self._scope, "table": key})
        return table_row(row) if row else None

    def sync(self, definitions: Sequence[TableDefinition], groups: Sequence[str] = ("default",)) -> list[TableRow]:
        """Makes the rows equal to the settings; called by capture at its start, may be repeated. Gives all rows.

        New tables wait for a copy (or go live without one, with `skip_snapshot`), tables that are gone from the
        settings become REMOVED, and a table that was dropped and created again is parked. `groups` are those whose
        settings these are; other groups get rows too, and `adopt` them.
        """
        with self._db.transaction() as tx:
            settle_by_capture(tx, self._pipeline, definitions, groups)
        return self.all()

    def adopt(self, target_for: Callable[[TableName], Target | None], *, anew: bool = False) -> None:
        """Says where tables of this group go that capture has other settings for; called by its workers.

        Cheap when there is nothing new. `anew`, at a worker's start: what was said before is said again, as the
        settings may have changed. A table that `target_for` does not know becomes REMOVED for this group.
        """
        if self._group is None:
            raise ValueError("only a group can adopt tables")
        if not anew and self._db.fetch_one(_UNSETTLED, self._scope) is None:
            return
        with self._db.transaction() as tx:
            settle_by_workers(tx, self._pipeline, self._group, target_for, anew=anew)

    def offer_copy(self, keys: Iterable[str], *, snapshot_name: str, position: Lsn) -> list[str]:
        """PENDING → COPYING: a snapshot is exported and workers may copy at it. Gives the tables that were waiting for
        one as new as this.

        With `skip_snapshot` → LIVE: the table is to begin at `position` without rows.
        """
        values = {"tables": list(keys), "snapshot_name": snapshot_name, "position": int(position)}
        return self._changed(_OFFER_COPY, values)

    def withdraw_copies(self, snapshots: Iterable[str] | None = None) -> list[str]:
        """COPYING → PENDING: these snapshots, or all, are lost. Copies that read them may still be completed."""
        return self._changed(_WITHDRAW_COPIES, {"snapshots": None if snapshots is None else list(snapshots)})

    def give_up_copy(self, key: str, *, position: Lsn) -> bool:
        """COPYING → PENDING: at this snapshot the table can't be read any more. False if it is not copied at it."""
        return self._change(_GIVE_UP_COPY, {"table": key, "position": int(position)})

    def complete_copy(self, key: str, *, position: Lsn, rows: int) -> bool:
        """→ LIVE, after the copy cut at `position` is published. False if the table is parked or removed by now,
        live already, or if a newer copy was requested."""
        return self._change(_COMPLETE_COPY, {"table": key, "position": int(position), "rows": rows})

    def park(
        self,
        key: str,
        reason: str,
        hint: str | None = None,
        *,
        seen: TableRow | None = None,
        is_resumable: bool = False,
    ) -> bool:
        """→ PARKED, from any state but REMOVED. False if it is parked already: the first reason stays.

        `seen`: what the reason was found for; only that group's row is parked, and only if nothing was decided since.
        `is_resumable`: no change is missing, so its log is kept for a while and a table that was live may `resume`.
        """
        hint = hint or RESYNC_HINT.format(table=key)
        values: dict[str, object] = {"table": key, "reason": reason, "hint": hint, "keep_log": is_resumable}
        if seen is None:
            return self._change(_PARK, values)
        return self._change(_PARK_SEEN, {**values, **_seen(seen)})

    def resume(self, key: str) -> bool:
        """PARKED → LIVE: it goes on from its cursor. False if it is not parked, or if only a new copy helps."""
        return self._change(_RESUME, {"table": key})

    def give_up_log(self, key: str, reason: str) -> bool:
        """A table that is parked lacks changes by now, so that only a new copy helps. False if that was known."""
        return self._change(_GIVE_UP_LOG, {"table": key, "reason": reason, "hint": RESYNC_HINT.format(table=key)})

    def request_copy(self, key: str, *, reason: str | None = None) -> bool:
        """→ PENDING, from any state but REMOVED: the table is copied again. False if there is no such table.

        `reason`: why, where nobody asked for it; shown until the copy is complete.
        """
        return self._change(_REQUEST_COPY, {"table": key, "reason": reason})

    def replace(self, key: str, pg_oid: int, reason: str) -> bool:
        """→ PARKED, from any state but REMOVED: the name in the settings belongs to another table now, which is ours
        from then on."""
        hint = RESYNC_HINT.format(table=key)
        return self._change(_REPLACE, {"table": key, "pg_oid": pg_oid, "reason": reason, "hint": hint})

    def note_name(self, key: str, name: TableName) -> bool:
        """The table was renamed in the source, or has moved to another schema."""
        return self._change(_NOTE_NAME, {"table": key, "schema": name.schema, "name": name.name})

    def note_members(self, seen: TableRow, members: Iterable[int], position: Lsn) -> bool:
        """By which entries of the publication the table is sent; `position` is where the source was after it.

        If others were noted before, only a copy cut after `position` counts. False if the state is another by now.
        """
        values = {"table": seen.key, "members": sorted(members), "position": int(position)}
        return self._change(_NOTE_MEMBERS, {**values, **_seen(seen)})

    def note_failure(self, key: str, text: str) -> bool:
        """Counts one more failure in a row, for `icestream status`. Changes nothing else."""
        return self._change(_NOTE_FAILURE, {"table": key, "text": text})

    def clear_failures(self, key: str) -> bool:
        """The table was worked on again. False if nothing was noted."""
        return self._change(_CLEAR_FAILURES, {"table": key})

    def _change(self, query: str, values: dict[str, object]) -> bool:
        return self._db.execute(query, {**self._scope, **values}) > 0

    def _changed(self, query: str, values: dict[str, object]) -> list[str]:
        rows = self._db.fetch(query, {**self._scope, **values})
        return sorted({row["table_name"] for row in rows})


def _seen(row: TableRow) -> dict[str, object]:
    return {
        "seen_group": row.group,
        "seen_state": row.state.value,
        "seen_requested": int(row.requested_lsn),
        "seen_updated_at": row.updated_at,
    }
