"""One cycle of one table: from its cursor to a published commit.

step                 what                                                    a crash right after it
1 cursor read        cursor and current snapshot of the table                nothing happened
2 claims taken       whole claims after the cursor, within the budget        nothing happened
3 table evolved      its columns follow the batch's newest relation          harmless: the rows that are there fit
4 letters noted      what the table can't hold, under ids that repeat        the same letters again, same ids
5 batch staged       decoded, folded, written to a branch nobody reads       a later cycle drops the branch
6 batch published    one compare-and-set: main, branch, cursor property      the cursor says so, nothing is redone
7 cursor noted       the cache in the state database                         the table wins
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from icestream.errors import CopyNeeded, LakeUnavailable, PublishRefused, TableParked
from icestream.lake.commit import Commit
from icestream.lake.evolution import evolve
from icestream.lake.history import Owner, cursor_property, cursor_summary, find_cursor
from icestream.lake.java import JAVA_ERRORS, error_message
from icestream.lake.layout import Layout, settle_layout
from icestream.lake.session import Lake
from icestream.lake.stage import Stage
from icestream.lake.table import IcebergTable, quote
from icestream.materialize.apply import apply, within_bounds
from icestream.materialize.batch import BatchMaker
from icestream.materialize.evolve import columns_property, plan_evolution, stored_columns
from icestream.materialize.letters import note_letters
from icestream.materialize.moved import TableBefore
from icestream.materialize.ownership import require_kind, require_owner
from icestream.materialize.shape import Shape, row_fields
from icestream.materialize.standing import LogStanding, require_fitting
from icestream.model.cursor import Cursor
from icestream.model.position import Lsn
from icestream.model.table import Relation, Target, WriteMode
from icestream.observe.steps import reached
from icestream.state.dead_letters import DeadLetter, DeadLetters
from icestream.state.log_entries import LogEntries, LogEntry
from icestream.state.log_index import LogIndex
from icestream.state.sightings import SeenShape

_MAX_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class Log:
    """The staged changes of one epoch, and where their files lie."""

    epoch: str
    root: str
    entries: LogEntries
    index: LogIndex
    letters: DeadLetters


@dataclass(frozen=True)
class Applied:
    """What a cycle did; `rows` is 0 when there was nothing to do."""

    cursor: Cursor
    rows: int = 0
    snapshot_id: int | None = None
    dead_letters: int = 0
    first_commit_at: float | None = None  # seconds since 1970, of the oldest transaction in the batch
    followed: SeenShape | None = None  # columns that no row tells of, and that the table has now


class Cycle:
    """Works on one table. Not to be shared between threads."""

    def __init__(self, lake: Lake, owner: Owner, target: Target, log: Log, log_key: str) -> None:
        self._lake = lake
        self._owner = owner
        self._target = target
        self._log_key = log_key
        self._log = log
        self._is_laid_out = False  # as the target asks for; another target is another cycle

    def run(self, *, max_rows: int, max_bytes: int = _MAX_BYTES, seen: SeenShape | None = None) -> Applied:
        """Apply the next batch; or, if nothing waits, give the table the columns that were `seen` in the source.

        Raises PublishRefused (redo), TableParked (a person), CopyNeeded (another copy), LakeUnavailable (later).
        """
        table = self._load()
        base = table.head()
        cursor = self._cursor(table)
        reached("cursor read")
        entries = self._log.entries.after(self._log_key, cursor.offset, max_rows=max_rows, max_bytes=max_bytes)
        if not entries:
            return Applied(cursor, followed=self._follow(table, cursor, seen))
        self._require_epoch(entries)
        reached("claims taken")
        # What a copy already contains may have another shape, or be a long backlog: it is passed over unread.
        relations = self._relations([entry for entry in entries if entry.position > cursor.position])
        entries = self._of_one_identity(entries, relations)
        fresh = [entry for entry in entries if entry.position > cursor.position]
        shape = self._evolved(table, [relations[entry.relation_version] for entry in fresh]) if fresh else None
        reached("table evolved")
        after = Cursor(
            cursor.epoch,
            entries[-1].end_offset,
            max(cursor.position, entries[-1].position),
            copied_at=cursor.copied_at,
        )
        with self._lake.session() as session:
            commit = Commit(table, session, self._owner, base)
            if shape is None:
                return self._commit_nothing(commit, after)
            maker = BatchMaker(session, self._log.root, shape, after=cursor.position)
            try:
                return self._commit(commit, after, fresh, relations, maker)
            except JAVA_ERRORS as err:
                message = f"{self._target.key}: Spark could not make the batch: {error_message(err)}"
                raise LakeUnavailable(message) from err
            finally:
                maker.close()

    def _follow(self, table: IcebergTable, cursor: Cursor, seen: SeenShape | None) -> SeenShape | None:
        """Everything up to where they were seen is in the table; rows from after that tell of newer columns."""
        if seen is not None and cursor.position <= seen.position:
            self._evolved(table, [seen.relation])
        return seen

    def _commit_nothing(self, commit: Commit, after: Cursor) -> Applied:
        summary = cursor_summary(self._owner, after)
        newest = commit.make(lambda stage: stage.mark("1/1", summary), partial(cursor_property, after))
        return Applied(after, snapshot_id=newest)

    def _commit(
        self,
        commit: Commit,
        after: Cursor,
        entries: Sequence[LogEntry],
        relations: dict[str, Relation],
        maker: BatchMaker,
    ) -> Applied:
        write, letters = self._made(commit, maker, after, entries, relations)

        def write_all(stage: Stage) -> None:
            write(stage, cursor_summary(self._owner, after))
            reached("batch staged")

        newest = commit.make(write_all, partial(cursor_property, after))
        reached("batch published")
        return Applied(
            after,
            rows=sum(entry.record_count for entry in entries),
            snapshot_id=newest,
            dead_letters=letters,
            first_commit_at=min(entry.first_commit_at for entry in entries),
        )

    def _made(
        self,
        commit: Commit,
        maker: BatchMaker,
        after: Cursor,
        entries: Sequence[LogEntry],
        relations: dict[str, Relation],
    ) -> tuple[Callable[[Stage, Mapping[str, str]], None], int]:
        """What writes the batch to a stage, and how many dead letters it left."""
        if self._target.is_changelog:
            rows = maker.make_changelog(entries, relations)
            may_leave = any(column.leaves_letters for column in maker.shape.columns)
            letters = self._note_letters(maker, after.lsn) if may_leave else 0
            return lambda stage, summary: stage.append(rows, "1/1", summary), letters
        batch = maker.make(
            entries,
            relations,
            before=self._before(commit, maker.shape),
            may_be_absent=self._target.skip_snapshot,
            by_equality=self._target.write_mode == WriteMode.EQUALITY,
        )
        letters = self._note_letters(maker, after.lsn) if batch.stats.unfit or batch.stats.lost else 0
        return lambda stage, summary: apply(batch, stage, summary), letters

    def _load(self) -> IcebergTable:
        table = self._lake.catalog.load(self._target.namespace, self._target.name)
        if table is None:
            raise TableParked(
                f"{self._target.key}: the Iceberg table is gone", hint=f"icestream resync {self._target.key}"
            )
        require_owner(table, self._owner)
        if not self._is_laid_out:
            require_kind(table, self._target)
            settle_layout(table, Layout.of(self._target))
            self._is_laid_out = True
        return table

    def _cursor(self, table: IcebergTable) -> Cursor:
        extent = self._log.entries.extent(self._log_key)
        flushed = self._log.index.flushed()
        position = 0 if flushed is None else flushed.position
        log = LogStanding(self._log.epoch, extent.first_offset, extent.next_offset, position)
        seen = table.head()
        try:
            return require_fitting(self._target.key, find_cursor(table, self._owner), log)
        except TableParked as err:
            table.refresh()
            if table.head() != seen:  # a successor went on meanwhile: what we compared is not what is
                raise PublishRefused(f"{self._target.key}: the table moved while it was looked at") from err
            raise

    def _require_epoch(self, entries: Sequence[LogEntry]) -> None:
        if any(entry.epoch != self._log.epoch for entry in entries):
            raise PublishRefused(f"{self._target.key}: the log began anew while the table was worked on")

    def _relations(self, entries: Sequence[LogEntry]) -> dict[str, Relation]:
        versions = {entry.relation_version for entry in entries}
        return {version: self._log.entries.relation(self._log_key, version) for version in versions}

    def _of_one_identity(self, entries: Sequence[LogEntry], relations: Mapping[str, Relation]) -> list[LogEntry]:
        """The leading claims whose rows are matched by the same key: after a change of it, a new batch begins."""
        identities = {version: Shape.of(relation, self._target).identity for version, relation in relations.items()}
        claims = [list(claim) for _, claim in groupby(entries, key=lambda entry: entry.claim_id)]
        first, taken = None, list[LogEntry]()
        for claim in claims:
            found = {identities[entry.relation_version] for entry in claim if entry.relation_version in identities}
            if len(found) > 1:
                raise CopyNeeded(f"{self._target.key}: the key of the source table changed inside a transaction")
            if found and first is not None and first not in found:
                break
            first = next(iter(found), first)
            taken += claim
        return taken

    def _evolved(self, table: IcebergTable, relations: Sequence[Relation]) -> Shape:
        """The shape of rows to write, once the table has the columns of the newest of these relations."""
        relation, stored = relations[-1], stored_columns(table.properties())
        fields = row_fields(table.fields(), self._target)
        shape = Shape.of(relation, self._target)
        if not stored and not any(one.is_numbered for one in relations):
            return self._unnumbered(table, shape)
        if not all(one.is_numbered for one in relations):
            raise CopyNeeded(f"{self._target.key}: the source table was changed several times, and how is not certain")
        evolution = plan_evolution(fields, stored, relation, self._target)
        if evolution.change.is_needed(table):
            evolve(table, evolution.change, columns_property(evolution.columns))
        return shape.in_table(row_fields(table.fields(), self._target), evolution.columns, self._target.key)

    def _unnumbered(self, table: IcebergTable, shape: Shape) -> Shape:
        """Without numbers columns can't be followed: only what is called alike, and is alike, fits."""
        fields = row_fields(table.fields(), self._target)
        difference = shape.difference(fields)
        if difference is not None:
            raise CopyNeeded(f"{self._target.key}: what became of the source's columns is not certain: {difference}")
        return shape.in_table(fields, {}, self._target.key)

    def _before(self, commit: Commit, shape: Shape) -> TableBefore:
        """The table without the batch. Should `main` move meanwhile, the publish is refused and all is read again."""

        def read(wanted: DataFrame) -> DataFrame:
            rows = within_bounds(commit.session.table(commit.table.sql_name()), wanted, shape)
            return rows.select(
                F.struct(*(rows[quote(column.name)] for column in shape.keys)).alias("key"),
                F.struct(*(rows[quote(name)] for name in shape.names)).alias("row"),
            )

        return read

    def _note_letters(self, maker: BatchMaker, position: Lsn) -> int:
        letters = (self._letter(found, position) for found in maker.letters())
        count = note_letters(self._log.letters, letters, maker.shape, self._target.key)
        reached("letters noted")
        return count

    def _letter(self, found: Mapping[str, Any], position: Lsn) -> DeadLetter:
        """`position`: of the batch, where the letter has none of its own."""
        return DeadLetter(
            table=self._log_key,
            epoch=self._log.epoch,
            offset=found["offset"],
            position=Lsn(found.get("lsn", position)),
            column=found["column"],
            key=msgspec.json.decode(found["key"]),
            value=found["text"],
            reason=found["reason"],
        )
