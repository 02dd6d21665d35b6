"""The materializer role: takes its share of the tables and brings them forward, in parallel, until told to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from icestream.config.settings import Settings
from icestream.errors import (
    CopyStopped,
    IcestreamError,
    LakeError,
    LakeUnavailable,
    PublishRefused,
    Retry,
    StateLimit,
    StateUnavailable,
)
from icestream.lake.history import Owner
from icestream.lake.java import is_jvm_gone
from icestream.lake.session import Lake, LakeOptions, open_lake
from icestream.lake.tasks import Tasks
from icestream.materialize.cycle import Log
from icestream.materialize.lease_keeper import LeaseKeeper
from icestream.materialize.letter_mover import LetterMover
from icestream.materialize.range_copy import CopyTools
from icestream.materialize.schedule import Turn
from icestream.materialize.table_work import TableWork, Workbench
from icestream.model.table import TableState
from icestream.observe.health import Pulse
from icestream.observe.logs import fields, one_line
from icestream.state.assignment import assign
from icestream.state.copy_progress import CopyProgress
from icestream.state.cursors import Cursors
from icestream.state.database import Database
from icestream.state.dead_letters import DeadLetters
from icestream.state.groups import Groups
from icestream.state.identity import Identity
from icestream.state.leases import Leases
from icestream.state.letter_moves import LetterMoves
from icestream.state.log_entries import LogEntries, PendingLog
from icestream.state.log_index import LogIndex
from icestream.state.sightings import SeenShape, Sightings
from icestream.state.tables import TableRow, Tables

log = logging.getLogger(__name__)

_LONGEST_TICK_S = 0.25
_MOST_REFUSALS = 10  # of one table while draining
_LETTERS_INTERVAL_S = 30.0


@dataclass(frozen=True)
class _Share:
    """What this worker has to do right now."""

    epoch: str
    rows: list[TableRow]
    pending: dict[str, PendingLog]
    seen: dict[str, SeenShape]  # columns that tables may not have yet
    lettered: dict[str, list[str]]  # the tables of each namespace, for the one worker that moves dead letters


@dataclass(frozen=True)
class _Desk:
    """Where a worker works. Copies take long, so they have threads of their own: live tables go on meanwhile."""

    bench: Workbench
    keeper: LeaseKeeper
    cycles: ThreadPoolExecutor
    copies: ThreadPoolExecutor

    def pool_for(self, row: TableRow) -> ThreadPoolExecutor:
        return self.copies if row.state is TableState.COPYING else self.cycles


class Worker:
    def __init__(self, settings: Settings, *, worker_id: str, db: Database, pulse: Pulse | None = None) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._db = db
        self._pulse = pulse or Pulse("worker")
        pipeline, group = settings.pipeline, settings.state.group
        self._group = group
        self._owner = Owner(pipeline, group)
        self._tables = Tables(db, pipeline, group)
        self._leases = Leases(db, pipeline, group)
        self._entries = LogEntries(db, pipeline)
        self._index = LogIndex(db, pipeline)
        self._identity = Identity(db, pipeline)
        self._letters = DeadLetters(db, pipeline)
        self._moves = LetterMoves(db, pipeline, group)
        self._cursors = Cursors(db, pipeline, group)
        self._sightings = Sightings(db, pipeline)
        self._groups = Groups(db, pipeline)
        self._states = (TableState.COPYING,) if settings.snapshot_only else (TableState.COPYING, TableState.LIVE)
        self._turns: dict[str, Turn] = defaultdict(Turn)
        self._letter_turn = Turn()
        self._work: dict[str, TableWork] = {}
        self._wake = threading.Event()
        self._is_cut_off = False
        self._spark_failure: BaseException | None = None

    def run(self, stop: threading.Event) -> None:
        """Works until `stop` is set, then applies what is in the log, gives back the lease and returns."""
        ttl_s = self._settings.state.consumer_ttl
        self._pulse.pause("waits for its lease")
        with LeaseKeeper(self._leases, self._worker_id, ttl_s=ttl_s, stop=stop) as keeper:
            if not keeper.held:
                return
            self._groups.register(self._group)
            self._tables.adopt(self._settings.target_for, anew=True)
            self._pulse.pause("waits for Spark to start")
            with closing(open_lake(LakeOptions.from_settings(self._settings))) as lake:
                self._serve(lake, keeper, stop)

    def _serve(self, lake: Lake, keeper: LeaseKeeper, stop: threading.Event) -> None:
        concurrency = self._settings.sink.materializer_concurrency
        with (
            closing(Tasks(lake.spark, self._settings.source.logical.snapshot_concurrency)) as tasks,
            ThreadPoolExecutor(concurrency, thread_name_prefix="table") as cycles,
            ThreadPoolExecutor(concurrency, thread_name_prefix="copy") as copies,
        ):
            desk = _Desk(self._workbench(lake, tasks, stop), keeper, cycles, copies)
            mover = LetterMover(lake, self._owner, self._moves)
            log.info("worker is ready", extra=fields(worker=self._worker_id))
            while not stop.is_set():
                self._require_spark(lake)
                share = self._tick(desk)
                self._beat(keeper)
                if self._letter_turn.is_over(time.monotonic(), _LETTERS_INTERVAL_S):
                    self._move_letters(mover, cycles, share)
                self._pause(stop)
            self._pulse.pause("is stopping")
            if not self._settings.snapshot_only:
                self._drain(desk)
            if keeper.held and self._spark_failure is None and not self._letter_turn.running:
                self._move_letters(mover, cycles, self._share())

    def _workbench(self, lake: Lake, tasks: Tasks, stop: threading.Event) -> Workbench:
        source = self._settings.source
        copying = CopyTools(
            tasks,
            CopyProgress(self._db, self._settings.pipeline, self._group),
            self._letters,
            source.logical.snapshot_chunk_pages,
            source.logical.snapshot_target_file_size,
            stop.is_set,
        )
        conninfo = source.postgres.conninfo()
        return Workbench(lake, self._owner, conninfo, self._tables, self._cursors, self._sightings, copying)

    def _require_spark(self, lake: Lake) -> None:
        """Without Spark a worker is of no use, and must not keep its tables: a new process has to take over."""
        if self._spark_failure is not None or not lake.is_running:
            self._pulse.pause("has lost Spark")
            raise LakeUnavailable("Spark has ended", hint="look at the memory of this machine") from self._spark_failure

    def _beat(self, keeper: LeaseKeeper) -> None:
        """Without its lease a worker may do nothing."""
        if keeper.held:
            self._pulse.beat()
        else:
            self._pulse.pause("has lost its lease")

    def _tick(self, desk: _Desk) -> _Share | None:
        try:
            if not desk.keeper.held:
                self._pulse.pause("waits for its lease")
                desk.keeper.wait_for_lease()
                log.info("joined again", extra=fields(worker=self._worker_id))
            share = self._share()
        except StateUnavailable as err:
            self._note_state(err)
            return None
        self._note_state(None)
        if share is None:
            return None
        now = time.monotonic()
        for row in share.rows:
            if self._is_due(row, share, now):
                self._start(desk, share, row)
        return share

    def _move_letters(self, mover: LetterMover, pool: ThreadPoolExecutor, share: _Share | None) -> None:
        if share is not None and share.lettered:
            self._letter_turn.begin(time.monotonic())
            pool.submit(mover.run, share.lettered).add_done_callback(self._finish_letters)

    def _finish_letters(self, future: Future[int]) -> None:
        """What failed is tried again with the next turn: the letters stay in the state."""
        error = future.exception()
        if error is None:
            self._letter_turn.succeed()
            log.debug("dead letters moved", extra=fields(letters=future.result()))
            return
        self._letter_turn.fail(time.monotonic())
        known = isinstance(error, IcestreamError)
        details = fields(reason=one_line(error), hint=error.hint if isinstance(error, IcestreamError) else None)
        log.warning("dead letters not moved, trying again", extra=details, exc_info=None if known else error)

    def _note_state(self, error: StateUnavailable | None) -> None:
        """Trouble is logged when it begins and when it is over."""
        if error is not None and not self._is_cut_off:
            log.warning("state database does not answer", extra=fields(reason=error))
        elif error is None and self._is_cut_off:
            log.info("state database answers again")
        self._is_cut_off = error is not None

    def _is_due(self, row: TableRow, share: _Share, now: float) -> bool:
        turn, interval_s = self._turns[row.key], self._settings.sink.materializer_interval
        if row.state is TableState.COPYING:
            return turn.is_free(now)
        if row.key in share.seen and turn.is_over(now, interval_s):
            return True
        return turn.is_due(share.pending.get(row.key), now, interval_s)

    def _share(self) -> _Share | None:
        """The tables that fall to this worker, as every worker computes it; None before capture has begun."""
        identity = self._identity.load()
        if identity is None:
            return None
        self._tables.adopt(self._settings.target_for)
        rows = {row.key: row for row in self._tables.all() if row.state is not TableState.REMOVED}
        for gone in self._work.keys() - rows.keys():
            del self._work[gone]
        workers = self._leases.active()
        mine = assign(list(rows), workers).get(self._worker_id, [])
        active = [rows[key] for key in mine if rows[key].state in self._states]
        pending = {waiting.table: waiting for waiting in self._entries.pending(self._group)}
        seen = self._sightings.unsettled_shapes(self._group)
        is_first = self._worker_id == min(workers, default=None)
        return _Share(identity.epoch, active, pending, seen, _by_namespace(rows.values()) if is_first else {})

    def _start(self, desk: _Desk, share: _Share, row: TableRow) -> Future[int]:
        turn = self._turns[row.key]
        turn.begin(time.monotonic())
        work = self._work_for(desk.bench, share.epoch, row)
        seen = share.seen.get(row.key)
        future = desk.pool_for(row).submit(work.run, row, max_rows=turn.max_rows(row.failures), seen=seen)
        future.add_done_callback(partial(self._finish, row, desk.keeper))
        return future

    def _work_for(self, bench: Workbench, epoch: str, row: TableRow) -> TableWork:
        work = self._work.get(row.key)
        if work is None or not work.fits(row, epoch):
            root = self._settings.sink.staging_root
            work = TableWork(bench, row, Log(epoch, root, self._entries, self._index, self._letters))
            self._work[row.key] = work
        return work

    def _finish(self, row: TableRow, keeper: LeaseKeeper, future: Future[int]) -> None:
        error, turn = future.exception(), self._turns[row.key]
        if error is None:
            turn.succeed()
        elif isinstance(error, CopyStopped):
            turn.refuse(time.monotonic())
        elif isinstance(error, PublishRefused):
            log.info("publish was refused, the batch is made again", extra=fields(table=row.key, reason=error))
            turn.refuse(time.monotonic())
        else:
            turn.fail(time.monotonic())
            if is_jvm_gone(error):
                self._spark_failure = error
        self._try_noting(row, keeper, error)
        self._wake.set()

    def _try_noting(self, row: TableRow, keeper: LeaseKeeper, error: BaseException | None) -> None:
        """What the state does not take now is noted with the next turn that ends the same way."""
        try:
            if error is None and row.failures:
                self._tables.clear_failures(row.key)
            elif isinstance(error, LakeError | StateLimit) and error.retry is Retry.NEVER:
                self._park(row, keeper, error)
            elif error is not None and not isinstance(error, PublishRefused | CopyStopped):
                self._report(row, error)
        except StateUnavailable as err:
            log.debug("not noted", extra=fields(table=row.key, reason=err))

    def _park(self, row: TableRow, keeper: LeaseKeeper, error: IcestreamError) -> None:
        """Only the owner may park: a worker that has lost its lease may have looked at something old."""
        if keeper.held and self._tables.park(row.key, str(error), error.hint, seen=row, is_resumable=True):
            log.error("table is parked", extra=fields(table=row.key, reason=error, hint=error.hint))

    def _report(self, row: TableRow, error: BaseException) -> None:
        known = isinstance(error, IcestreamError)
        details = fields(table=row.key, reason=one_line(error))
        log.warning("table could not be worked on, trying again", extra=details, exc_info=None if known else error)
        log.debug("in full", exc_info=error)
        self._tables.note_failure(row.key, one_line(error))

    def _pause(self, stop: threading.Event) -> None:
        """Until something finished or a moment has passed."""
        if not stop.is_set():
            self._wake.wait(min(_LONGEST_TICK_S, self._settings.sink.materializer_interval / 4))
        self._wake.clear()

    def _drain(self, desk: _Desk) -> None:
        """Bring our tables to where the log ended when we were told to stop; give up on what fails."""
        goals: dict[str, int] | None = None
        while desk.keeper.held and self._spark_failure is None and (share := self._share()):
            if goals is None:
                goals = {key: waiting.end_offset for key, waiting in share.pending.items()}
            behind = [row for row in share.rows if self._is_behind(row, share.pending.get(row.key), goals)]
            for row in behind:
                if not self._turns[row.key].running:
                    self._start(desk, share, row)
            if not behind and not any(turn.running for turn in self._turns.values()):
                return
            self._wake.wait(_LONGEST_TICK_S)
            self._wake.clear()

    def _is_behind(self, row: TableRow, waiting: PendingLog | None, goals: Mapping[str, int]) -> bool:
        turn = self._turns[row.key]
        if waiting is None or row.state is not TableState.LIVE or turn.failures or turn.refusals > _MOST_REFUSALS:
            return False
        return waiting.end_offset - waiting.rows < goals.get(row.key, 0)


def _by_namespace(rows: Iterable[TableRow]) -> dict[str, list[str]]:
    tables: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        tables[row.target.namespace].append(row.key)
    return dict(tables)
