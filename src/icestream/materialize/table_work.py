"""What a worker does with one table at a time: its first copy, or one cycle."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from icestream.errors import CopyNeeded, SourceForbidden, SourceReshaped, TableParked
from icestream.lake.history import Owner
from icestream.lake.session import Lake
from icestream.materialize.cycle import Cycle, Log
from icestream.materialize.first_copy import CopyRequest, begin_without_copy, first_copy
from icestream.materialize.range_copy import CopyTools
from icestream.materialize.shape import Shape
from icestream.materialize.source_rows import SourceRows
from icestream.model.changelog import CopyMark
from icestream.model.position import ZERO
from icestream.model.table import Relation, TableState
from icestream.observe.logs import fields
from icestream.observe.steps import reached
from icestream.sources.postgres.catalog import read_tables
from icestream.sources.postgres.connection import connect, pinned
from icestream.sources.postgres.ranges import at_snapshot
from icestream.state.cursors import Cursors
from icestream.state.sightings import SeenShape, Sightings
from icestream.state.tables import TableRow, Tables

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Workbench:
    """What work on any table needs."""

    lake: Lake
    owner: Owner
    source_conninfo: str
    tables: Tables
    cursors: Cursors
    sightings: Sightings
    copying: CopyTools


class TableWork:
    """Keeps a cycle, and with it a Spark session, for one table in one epoch."""

    def __init__(self, bench: Workbench, row: TableRow, log: Log) -> None:
        self.log = log
        self.target = row.target
        self._key = row.key
        self._bench = bench
        self._cycle = Cycle(bench.lake, bench.owner, row.target, log, row.key)

    def fits(self, row: TableRow, epoch: str) -> bool:
        return self.log.epoch == epoch and self.target == row.target

    def run(self, row: TableRow, *, max_rows: int, seen: SeenShape | None = None) -> int:
        """One step of the table; gives the number of changes or rows it brought in.

        `seen`: columns that the log does not tell of; everything up to where they were seen is in the log.
        """
        now = self._bench.tables.get(row.key)
        if now is None or (now.state, now.requested_lsn) != (row.state, row.requested_lsn):
            return 0  # something was decided while this waited for its turn
        if row.state is TableState.COPYING:
            return self._copy(row)
        if row.target.skip_snapshot and not row.snapshot_complete:
            self._begin_without_copy(row)
        try:
            return self._apply(max_rows, seen)
        except CopyNeeded as err:
            self._request_copy(row, err)
            return 0

    def _request_copy(self, row: TableRow, reason: CopyNeeded) -> None:
        """The table is copied again, without anybody's doing; readers see what is there until then."""
        if row.target.skip_snapshot:
            raise TableParked(f"{reason}; its rows are not to be copied", hint=reason.hint) from reason
        self._bench.tables.request_copy(row.key, reason=str(reason))
        log.warning("table is copied anew", extra=fields(table=row.key, reason=reason))

    def _copy(self, row: TableRow) -> int:
        began = time.monotonic()
        try:
            copied = first_copy(self._bench.lake, self._bench.owner, self._request(row), self._bench.copying)
        except SourceReshaped:
            if row.snapshot_lsn is not None and self._bench.tables.give_up_copy(row.key, position=row.snapshot_lsn):
                log.warning("copy given up, waiting for another snapshot", extra=fields(table=row.key))
            raise
        except SourceForbidden as err:
            raise TableParked(
                f"{row.key}: {err}",
                hint=f"grant SELECT on {row.source} to the user of `source.postgres` (and BYPASSRLS, where it has"
                f" row-level security), then run `icestream resync {row.key}`",
            ) from err
        self._bench.tables.complete_copy(row.key, position=copied.cursor.lsn, rows=copied.rows)
        self._bench.cursors.record(row.key, copied.cursor, snapshot_id=copied.snapshot_id, rows=0)
        reached("copy completed")
        seconds = round(time.monotonic() - began, 1)
        log.info("copied", extra=fields(table=row.key, rows=copied.rows, seconds=seconds))
        return copied.rows

    def _begin_without_copy(self, row: TableRow) -> None:
        """Once, and again after a demand; a table that is gone otherwise is for a person to settle."""
        stored = self._bench.cursors.load(row.key)
        begun = stored is not None and stored.cursor.epoch == self.log.epoch
        if stored is None or not begun or stored.cursor.position <= row.requested_lsn:
            begin_without_copy(self._bench.lake, self._bench.owner, self._request(row))

    def _apply(self, max_rows: int, seen: SeenShape | None) -> int:
        applied = self._cycle.run(max_rows=max_rows, seen=seen)
        note = partial(self._bench.cursors.record, self._key, applied.cursor, snapshot_id=applied.snapshot_id)
        stored = note(rows=applied.rows, lag_ms=_age_ms(applied.first_commit_at))
        if stored.cursor.epoch == applied.cursor.epoch and stored.cursor.position > applied.cursor.position:
            log.warning("table was rolled back", extra=fields(table=self._key, position=applied.cursor.lsn))
            note(rows=0, went_back=True)
        if applied.followed is not None:
            self._bench.sightings.settle_shape(self._bench.owner.group, self._key, applied.followed.position)
        reached("cursor noted")
        return applied.rows

    def _request(self, row: TableRow) -> CopyRequest:
        conninfo, relation = pinned(self._bench.source_conninfo), self._relation(row)
        keys = tuple(column.name for column in Shape.of(relation, row.target).keys)
        position = row.snapshot_lsn or ZERO
        mark = CopyMark(position, datetime.now(UTC), relation.naming) if row.target.is_changelog else None
        return CopyRequest(
            log_key=row.key,
            target=row.target,
            source=SourceRows(relation, keys, conninfo, row.snapshot_name or "", row.target.types, mark),
            position=position,
            offset=self._first_offset(row.key),
            epoch=self.log.epoch,
            requested=row.requested_lsn,
        )

    def _relation(self, row: TableRow) -> Relation:
        """As it was in the snapshot that the rows are read at; without one, as it is now."""
        conninfo, snapshot = self._bench.source_conninfo, row.snapshot_name
        with at_snapshot(conninfo, snapshot) if snapshot else connect(conninfo) as connection:
            found = read_tables(connection, [row.pg_oid])
        if not found:
            raise TableParked(f"{row.source} is gone from the source (oid {row.pg_oid})")
        return found[0].relation()

    def _first_offset(self, key: str) -> int:
        """Where the log begins for a new copy: what the table had passed before may be removed at any moment."""
        stored = self._bench.cursors.load(key)
        passed = stored.cursor.offset if stored is not None and stored.cursor.epoch == self.log.epoch else 0
        return max(self.log.entries.extent(key).first_offset, passed)


def _age_ms(committed_at: float | None) -> int | None:
    return None if committed_at is None else max(0, int((time.time() - committed_at) * 1000))
