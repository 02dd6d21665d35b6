"""Where everything stands, read from the state database: for `icestream status`, the metrics and the demo."""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from icestream.config.settings import Settings
from icestream.errors import SourceError
from icestream.model.position import Lsn
from icestream.model.table import TableState
from icestream.runtime.opening import opened_source
from icestream.sources.postgres.slot import Slot, find_slot, read_position, retained
from icestream.state.assignment import assign
from icestream.state.copy_progress import CopyProgress, CopyStanding, together
from icestream.state.cursors import Cursors, StoredCursor
from icestream.state.database import Database
from icestream.state.dead_letters import DeadLetters
from icestream.state.groups import Groups
from icestream.state.leases import Leases
from icestream.state.log_entries import LogEntries, PendingLog
from icestream.state.log_index import LogIndex
from icestream.state.migrate import require_current
from icestream.state.sightings import Sightings
from icestream.state.tables import TableRow, Tables

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CopyStatus:
    """A first copy that is under way. `percent` of the pages; what is left is guessed from what is done."""

    rows: int
    bytes: int  # of the files written
    percent: float
    rows_per_second: float
    left_seconds: float | None  # None: nothing is done yet


@dataclass(frozen=True)
class TableStatus:
    """One table of the group. `lag_seconds`: how long its oldest staged change has been waiting; 0: caught up.

    `name` is that in the log, `target` that in the lake: only in a group with other settings than capture they differ.
    """

    name: str
    source: str
    target: str
    write_mode: str
    state: str
    reason: str | None
    hint: str | None
    resumable: bool  # parked, and its log is kept for a while
    pending_rows: int
    pending_bytes: int
    rows_applied: int
    copied_rows: int | None
    copy: CopyStatus | None
    lag_seconds: float
    commit_lag_ms: int | None
    position: Lsn | None
    last_commit: datetime | None
    dead_letters: int
    failures: int  # in a row; 0 once it was worked on again
    last_failure: str | None


@dataclass(frozen=True)
class WorkerStatus:
    id: str
    host: str
    pid: int
    alive: bool  # its lease has not ended
    started_at: datetime
    expires_at: datetime
    tables: tuple[str, ...]


@dataclass(frozen=True)
class SlotStatus:
    """`active`: somebody reads it, which is capture. `retained_bytes`: WAL that the server keeps for it.

    `held_by` says why where it is more than `budget_bytes`. `safe_bytes`: what can still be written before the server
    gives the slot up; None where it never does.
    """

    name: str
    exists: bool
    active: bool
    lost: bool
    retained_bytes: int | None
    budget_bytes: int
    held_by: str | None = None
    safe_bytes: int | None = None


@dataclass(frozen=True)
class Status:
    """`position`: everything up to there is in the log. `watched_at`: when capture last looked after the source.

    `source_lag_bytes` and `slot` are None when the source could not be asked. `stalled_groups`: other groups without a
    live worker, for which staged files are kept.
    """

    pipeline: str
    group: str
    epoch: str | None
    position: Lsn | None
    source_lag_bytes: int | None
    slot: SlotStatus | None
    watched_at: datetime | None
    copy: CopyStatus | None  # of all tables together
    tables: tuple[TableStatus, ...]
    workers: tuple[WorkerStatus, ...]
    stalled_groups: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Fit for JSON: positions as PostgreSQL prints them, times in ISO form."""
        return {key: _plain(value) for key, value in dataclasses.asdict(self).items()}


def read_status(db: Database, settings: Settings) -> Status:
    """Raises StateVersionMismatch when there is no state yet, StateUnavailable when it cannot be reached.

    A source that cannot be reached only leaves `source_lag_bytes` and `slot` open.
    """
    require_current(db)
    flushed = LogIndex(db, settings.pipeline).flushed()
    position = flushed.position if flushed else None
    tables = read_tables(db, settings)
    written, slot = _try_source(settings)
    return Status(
        pipeline=settings.pipeline,
        group=settings.state.group,
        epoch=flushed.epoch if flushed else None,
        position=position,
        source_lag_bytes=_lag(written, position),
        slot=slot,
        watched_at=_watched_at(db, settings),
        copy=_copy(together(CopyProgress(db, settings.pipeline, settings.state.group).standings().values())),
        tables=tables,
        workers=_workers(db, settings, [table.name for table in tables]),
        stalled_groups=_stalled_groups(db, settings),
    )


def read_tables(db: Database, settings: Settings) -> tuple[TableStatus, ...]:
    pipeline, group = settings.pipeline, settings.state.group
    cursors = Cursors(db, pipeline, group).all()
    pending = {entry.table: entry for entry in LogEntries(db, pipeline).pending(group)}
    letters = DeadLetters(db, pipeline).counts()
    copies = CopyProgress(db, pipeline, group).standings()
    return tuple(
        _table(row, cursors.get(row.key), pending.get(row.key), copies.get(row.key), letters.get(row.key, 0))
        for row in Tables(db, pipeline, group).all()
        if row.state is not TableState.REMOVED
    )


def _try_source(settings: Settings) -> tuple[Lsn | None, SlotStatus | None]:
    """How far the source has written, and how the slot is; nothing when it cannot be asked now."""
    logical = settings.source.logical
    try:
        with opened_source(settings) as conn:
            written = read_position(conn)
            found = find_slot(conn, logical.slot_name)
    except SourceError as err:
        log.debug("source not asked for its position", exc_info=err)
        return None, None
    return written, _slot(logical.slot_name, found, written, logical.slot_budget)


def _slot(name: str, found: Slot | None, written: Lsn, budget: int) -> SlotStatus:
    if found is None:
        return SlotStatus(name, exists=False, active=False, lost=False, retained_bytes=None, budget_bytes=budget)
    kept = retained(found, written)
    return SlotStatus(
        name,
        exists=True,
        active=found.active,
        lost=found.is_lost,
        retained_bytes=kept.size if kept else None,
        budget_bytes=budget,
        held_by=kept.held_by if kept and kept.size > budget else None,
        safe_bytes=found.safe_bytes,
    )


def _watched_at(db: Database, settings: Settings) -> datetime | None:
    look = Sightings(db, settings.pipeline).last_look()
    return None if look is None else look[1]


def _table(
    row: TableRow,
    cursor: StoredCursor | None,
    pending: PendingLog | None,
    copy: CopyStanding | None,
    dead_letters: int,
) -> TableStatus:
    return TableStatus(
        name=row.key,
        source=str(row.source),
        target=row.target.key,
        write_mode=row.target.write_mode,
        state=row.state.value,
        reason=row.reason,
        hint=row.hint,
        resumable=row.resumable_since is not None,
        pending_rows=pending.rows if pending else 0,
        pending_bytes=pending.bytes if pending else 0,
        rows_applied=cursor.rows_applied if cursor else 0,
        copied_rows=row.copy_rows,
        copy=_copy(copy),
        lag_seconds=pending.waiting_s if pending else 0.0,
        commit_lag_ms=cursor.lag_ms if cursor else None,
        position=cursor.cursor.lsn if cursor else None,
        last_commit=cursor.last_committed if cursor else None,
        dead_letters=dead_letters,
        failures=row.failures,
        last_failure=row.last_failure,
    )


def _copy(standing: CopyStanding | None) -> CopyStatus | None:
    if standing is None:
        return None
    return CopyStatus(
        rows=standing.rows,
        bytes=standing.bytes,
        percent=100 * standing.ratio,
        rows_per_second=standing.rows_per_second,
        left_seconds=standing.left_seconds,
    )


def _workers(db: Database, settings: Settings, tables: list[str]) -> tuple[WorkerStatus, ...]:
    workers = Leases(db, settings.pipeline, settings.state.group).workers()
    assigned = assign(tables, [worker.worker_id for worker in workers if worker.alive])
    return tuple(
        WorkerStatus(
            id=worker.worker_id,
            host=worker.host,
            pid=worker.pid,
            alive=worker.alive,
            started_at=worker.started_at,
            expires_at=worker.expires_at,
            tables=tuple(assigned.get(worker.worker_id, ())),
        )
        for worker in workers
    )


def _stalled_groups(db: Database, settings: Settings) -> tuple[str, ...]:
    pipeline, entries = settings.pipeline, LogEntries(db, settings.pipeline)
    others = [group for group in Groups(db, pipeline).names() if group != settings.state.group]
    return tuple(group for group in others if not Leases(db, pipeline, group).active() and entries.pending(group))


def _lag(source: Lsn | None, position: Lsn | None) -> int | None:
    if source is None or position is None:
        return None
    return max(0, int(source) - int(position))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Lsn):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value
