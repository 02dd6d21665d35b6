"""What the settings make of a group's tables: those of capture for its own group, those of its workers for another.

Capture's settings say which tables there are. Rows of another group wait, without being worked on, until one of its
workers has said where they go; a table that its settings do not name is REMOVED for that group only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from icestream.model.table import TableName, TableState, Target
from icestream.state.database import Transaction
from icestream.state.groups import register_group, registered_groups
from icestream.state.table_rows import (
    RESYNC_HINT,
    SELECT_TABLES,
    TableDefinition,
    TableRow,
    TargetBy,
    table_row,
)

_LOCKED = SELECT_TABLES + "ORDER BY group_name, table_name FOR UPDATE"
_UNSETTLED = SELECT_TABLES + (
    "AND ((target_by IS NULL AND state <> 'removed') OR (%(anew)s AND target_by = 'workers'))"
    " ORDER BY table_name FOR UPDATE"
)
# `requested_lsn`: a copy that was cut before what is in the log now, or before, is not the one that was asked for.
_SAVE = """
INSERT INTO {schema}.tables
    (pipeline, group_name, table_name, configured_schema, configured_name, source_schema, source_name, pg_oid, state,
     reason, hint, target, target_by, requested_lsn)
VALUES
    (%(pipeline)s, %(group)s, %(table)s, %(configured_schema)s, %(configured_name)s, %(source_schema)s, %(source_name)s,
     %(pg_oid)s, %(state)s, %(reason)s, %(hint)s, %(target)s, %(target_by)s, 0)
ON CONFLICT (pipeline, group_name, table_name) DO UPDATE
SET configured_schema = excluded.configured_schema, configured_name = excluded.configured_name,
    source_schema = excluded.source_schema, source_name = excluded.source_name, pg_oid = excluded.pg_oid,
    state = excluded.state, reason = excluded.reason, hint = excluded.hint,
    resumable_since = CASE
        WHEN excluded.state = tables.state AND excluded.pg_oid = tables.pg_oid THEN tables.resumable_since
    END,
    target = excluded.target, target_by = excluded.target_by,
    snapshot_complete = tables.snapshot_complete AND excluded.state = tables.state,
    snapshot_name = CASE WHEN excluded.state = tables.state THEN tables.snapshot_name END,
    requested_lsn = CASE
        WHEN tables.state = 'removed' AND excluded.state <> 'removed'
        THEN greatest((SELECT lsn FROM {schema}.flushed_lsn WHERE pipeline = %(pipeline)s), tables.snapshot_lsn, 0)
        ELSE tables.requested_lsn
    END,
    updated_at = now()
"""
# A table that comes back later is a new one to the workers that had settled it, wanted or not.
_REMOVE = """
UPDATE {schema}.tables
SET state = 'removed', reason = NULL, hint = NULL, resumable_since = NULL, snapshot_name = NULL, updated_at = now(),
    target_by = nullif(target_by, 'workers')
WHERE pipeline = %(pipeline)s AND (state <> 'removed' OR target_by = 'workers') AND NOT table_name = ANY(%(tables)s)
"""


@dataclass(frozen=True)
class _Standing:
    state: TableState
    target: Target
    target_by: TargetBy | None
    reason: str | None = None
    hint: str | None = None


def settle_by_capture(
    tx: Transaction, pipeline: str, definitions: Sequence[TableDefinition], own: Sequence[str]
) -> None:
    """One row for each definition in each registered group; the targets are those of the groups in `own` only."""
    for group in own:
        register_group(tx, pipeline, group)
    groups = registered_groups(tx, pipeline)
    rows = [table_row(row) for row in tx.fetch(_LOCKED, {"pipeline": pipeline, "group": None})]
    known = {(row.group, row.key): row for row in rows}
    keys = {row.key: row.target.primary_key for row in rows if row.group in own}
    tx.execute(_REMOVE, {"pipeline": pipeline, "tables": [definition.target.key for definition in definitions]})
    for group in groups:
        for definition in definitions:
            key, found = definition.target.key, definition.target.primary_key
            row = known.get((group, key))
            if group in own:
                standing = _of_captures_group(definition, row)
            else:
                standing = _of_other_group(definition, row, is_rekeyed=keys.get(key, found) != found)
            tx.execute(_SAVE, _values(pipeline, group, key, definition, standing))


def settle_by_workers(
    tx: Transaction, pipeline: str, group: str, target_for: Callable[[TableName], Target | None], *, anew: bool
) -> None:
    for row in map(table_row, tx.fetch(_UNSETTLED, {"pipeline": pipeline, "group": group, "anew": anew})):
        standing = _wanted(row, target_for(row.configured))
        if standing != _Standing(row.state, row.target, row.target_by, row.reason, row.hint):
            definition = TableDefinition(standing.target, row.source, row.pg_oid, row.configured)
            tx.execute(_SAVE, _values(pipeline, group, row.key, definition, standing))


def _of_captures_group(definition: TableDefinition, known: TableRow | None) -> _Standing:
    target = definition.target
    if known is None:
        return _Standing(TableState.LIVE if target.skip_snapshot else TableState.PENDING, target, "capture")
    if known.state is TableState.REMOVED:
        return _returned(known.key, target, "capture")
    return _kept(definition, known, target, "capture")


def _of_other_group(definition: TableDefinition, known: TableRow | None, *, is_rekeyed: bool) -> _Standing:
    if known is None or (known.state is TableState.REMOVED and known.target_by != "workers"):
        return _Standing(TableState.PENDING, definition.target, None)
    if known.state is TableState.REMOVED:
        return _Standing(known.state, known.target, known.target_by)
    if is_rekeyed or known.target_by != "workers":
        return _kept(definition, known, definition.target, None)
    return _kept(definition, known, known.target, known.target_by)


def _wanted(row: TableRow, target: Target | None) -> _Standing:
    if target is None:
        return _Standing(TableState.REMOVED, row.target, "workers")
    if not target.primary_key:  # capture looked it up in the source
        found = row.target.primary_key, row.target.is_key_found
        target = msgspec.structs.replace(target, primary_key=found[0], is_key_found=found[1])
    if row.state is TableState.REMOVED:
        return _returned(row.key, target, "workers")
    if row.target_by is None and row.state is TableState.PENDING and target.skip_snapshot:
        if row.requested_lsn:
            return _returned(row.key, target, "workers")
        return _Standing(TableState.LIVE, target, "workers")
    return _Standing(row.state, target, "workers", row.reason, row.hint)


def _kept(definition: TableDefinition, known: TableRow, target: Target, target_by: TargetBy | None) -> _Standing:
    if known.pg_oid == definition.pg_oid:
        return _Standing(known.state, target, target_by, known.reason, known.hint)
    return _Standing(
        TableState.PARKED,
        target,
        target_by,
        f"table was dropped and created again (oid {known.pg_oid} → {definition.pg_oid})",
        RESYNC_HINT.format(table=known.key),
    )


def _returned(key: str, target: Target, target_by: TargetBy) -> _Standing:
    """A copy closes the gap in the log; without one, a person has to know of it."""
    if not target.skip_snapshot:
        return _Standing(TableState.PENDING, target, target_by)
    return _Standing(
        TableState.PARKED,
        target,
        target_by,
        "table was not replicated for a while, and without a copy (`skip_snapshot`) those changes are missing",
        f"drop the Iceberg table {target.key}, then run `icestream resync {key}`: it begins anew without rows",
    )


def _values(pipeline: str, group: str, key: str, definition: TableDefinition, standing: _Standing) -> dict[str, object]:
    configured = definition.configured or definition.source
    return {
        "pipeline": pipeline,
        "group": group,
        "table": key,
        "configured_schema": configured.schema,
        "configured_name": configured.name,
        "source_schema": definition.source.schema,
        "source_name": definition.source.name,
        "pg_oid": definition.pg_oid,
        "target": msgspec.json.encode(standing.target).decode(),
        "target_by": standing.target_by,
        "state": standing.state.value,
        "reason": standing.reason,
        "hint": standing.hint,
    }
