"""Log entries to a batch that is ready to be applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from icestream.materialize.apply import Batch, is_known, is_new, look_at
from icestream.materialize.decisions import as_folded, at_offsets, decide, decide_inserts
from icestream.materialize.decode import changelog_rows, decode, read_staged, unfit_values, union, with_naming
from icestream.materialize.fold import fold, nothing_to_fold
from icestream.materialize.key_steps import key_steps
from icestream.materialize.moved import TableBefore, fill_kept, fill_moved, lost_values, note_absent
from icestream.materialize.shape import Shape
from icestream.model import change
from icestream.model.change import Op
from icestream.model.table import Profile, Relation
from icestream.state.dead_letters import LOST, unfit_reason
from icestream.state.log_entries import LogEntry

# In one partition a fold needs no shuffle; for so few rows that is faster than dividing the work.
_SMALL_BATCH = 20_000
_PIECE = 32 * 1024**2  # characters of dead letters


class BatchMaker:
    """Reads, decodes and folds one batch. `close` gives back the memory Spark keeps for it."""

    def __init__(self, session: SparkSession, root: str, shape: Shape, *, after: int) -> None:
        self._session = session
        self._root = root
        self.shape = shape
        self._after = after
        self._kept: list[DataFrame] = []
        self._staged: DataFrame | None = None
        self._common: frozenset[str] = frozenset()
        self._lost: DataFrame | None = None

    def make(
        self,
        entries: Sequence[LogEntry],
        relations: Mapping[str, Relation],
        *,
        before: TableBefore,
        may_be_absent: bool = False,
        by_equality: bool = False,
    ) -> Batch:
        """`by_equality`: known rows are deleted by key and written anew, so their values have to be known, too."""
        profile = reduce(Profile.__add__, (entry.profile for entry in entries))
        staged, empties_table = self._after_truncate(self._read(entries, relations), profile)
        self._staged = staged
        self._common = self._common_columns([relations[entry.relation_version] for entry in entries])
        effects = {"empties_table": empties_table, "may_be_absent": may_be_absent, "by_equality": by_equality}
        if profile.records > _SMALL_BATCH and self._last_change_tells_all(profile):
            return self._decided(staged, profile, effects)
        return self._folded(staged, profile, before, effects)

    def make_changelog(self, entries: Sequence[LogEntry], relations: Mapping[str, Relation]) -> DataFrame:
        """Every change as a row of its own; nothing is folded."""
        self._staged = self._read(entries, relations, in_changelog=True)
        return changelog_rows(self._staged, self.shape, after=self._after)

    def _decided(self, staged: DataFrame, profile: Profile, effects: Mapping[str, bool]) -> Batch:
        changes = decode(staged, self.shape, after=self._after)
        decided = decide_inserts(changes) if _only_inserts(profile) else self._keep(decide(changes))
        stats = look_at(decided, self.shape)
        known = self._newest(staged, decided.filter(is_known(self.shape)), stats.known)
        if _only_inserts(profile) and stats.new == profile.inserts:
            new = changes
        else:
            new = self._newest(staged, decided.filter(is_new(self.shape)), stats.new)
        return Batch(as_folded(known), new.select("row.*"), self.shape, stats, (), **effects)

    def _newest(self, staged: DataFrame, decided: DataFrame, count: int) -> DataFrame:
        return decode(at_offsets(staged, decided, count), self.shape, after=self._after)

    def _folded(self, staged: DataFrame, profile: Profile, before: TableBefore, effects: Mapping[str, bool]) -> Batch:
        changes = decode(staged, self.shape, after=self._after, told_apart_by=self._common)
        happened = key_steps(changes, self.shape, profile)
        toast = self._unchanged_columns(changes) if profile.unchanged else []
        alone = _only_inserts(profile)
        folded = self._keep(nothing_to_fold(happened) if alone else fold(happened, self.shape, toast))
        if toast and profile.rekeyed:
            folded = _apart(fill_moved(folded, happened, before, self.shape, toast))
        if toast and effects["by_equality"]:
            folded = _apart(fill_kept(folded, before, toast))
        elif toast and effects["may_be_absent"]:
            folded = _apart(note_absent(folded, before))
        stats = look_at(folded, self.shape)
        self._lost = folded.filter(F.size("lost") > 0) if stats.lost else None
        known, new = folded.filter(is_known(self.shape)), folded.filter(is_new(self.shape)).select("row.*")
        return Batch(known, new, self.shape, stats, toast, **effects)

    def _last_change_tells_all(self, profile: Profile) -> bool:
        return not (self.shape.full_identity or profile.rekeyed or profile.unchanged)

    def letters(self) -> Iterator[Mapping[str, object]]:
        """What the table can't hold, and what nobody knows: offset, key, column, text and reason of each value."""
        if self._staged is not None:
            frame = unfit_values(self._staged, self.shape, after=self._after)
            for row in _piecewise(frame):
                yield {**row.asDict(), "reason": unfit_reason(row["text"])}
        if self._lost is not None:
            for row in lost_values(self._lost).toLocalIterator():
                yield {**row.asDict(), "text": None, "reason": LOST}

    def close(self) -> None:
        for frame in self._kept:
            frame.unpersist()
        self._kept.clear()

    def _read(
        self, entries: Sequence[LogEntry], relations: Mapping[str, Relation], *, in_changelog: bool = False
    ) -> DataFrame:
        def version(entry: LogEntry) -> str:
            return entry.relation_version

        groups = groupby(sorted(entries, key=version), key=version)
        frames = {
            name: read_staged(self._session, self._root, list(group), relations[name], self.shape)
            for name, group in groups
        }
        if in_changelog:
            frames = {name: with_naming(frame, relations[name], self.shape) for name, frame in frames.items()}
        rows = sum(entry.record_count for entry in entries)
        return union([*frames.values()]).coalesce(1) if rows <= _SMALL_BATCH else union([*frames.values()])

    def _after_truncate(self, staged: DataFrame, profile: Profile) -> tuple[DataFrame, bool]:
        """What came before the last TRUNCATE does not matter any more."""
        if profile.truncates == 0:
            return staged, False
        truncates = staged.filter((F.col(change.OP) == Op.TRUNCATE) & (F.col(change.LSN) > self._after))
        last: int | None = truncates.agg(F.max("offset")).collect()[0][0]
        if last is None:
            return staged.filter(F.col(change.OP) != Op.TRUNCATE), False
        return staged.filter(F.col("offset") > last), True

    def _common_columns(self, relations: Sequence[Relation]) -> frozenset[str]:
        """Those that all of these relations have, and write alike: a row's image in another one is of no use."""
        kinds: dict[str, set[object]] = {column.name: set() for column in self.shape.told}
        for relation in set(relations):
            types = {column.name: (column.type_oid, column.typmod) for column in relation.columns}
            for column, (source, _) in zip(self.shape.told, self.shape.sources(relation), strict=True):
                kinds[column.name].add(None if source is None else types[source])
        return frozenset(name for name, found in kinds.items() if len(found) == 1 and None not in found)

    def _unchanged_columns(self, changes: DataFrame) -> list[str]:
        names = changes.filter(F.col("unchanged").isNotNull()).select(F.explode("unchanged")).distinct().collect()
        present = {row[0] for row in names}
        return [name for name in self.shape.names if name in present]

    def _keep(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist())
        return frame


def _only_inserts(profile: Profile) -> bool:
    return profile.inserts + profile.truncates == profile.records


def _piecewise(frame: DataFrame) -> Iterator[Row]:
    """The letters of a batch, however large they are together: a partition comes to the driver in one piece."""
    size: int | None = frame.agg(F.sum(F.length("key") + F.coalesce(F.length("text"), F.lit(0)))).collect()[0][0]
    if size is None:
        return
    pieces = -(-size // _PIECE)
    yield from (frame.repartition(pieces) if pieces > 1 else frame).toLocalIterator()


def _apart(frame: DataFrame) -> DataFrame:
    """Without its plan, which reads the table: Spark can't plan a copy-on-write MERGE of a table with itself."""
    return frame.localCheckpoint()
