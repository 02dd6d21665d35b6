"""A table that takes batches of hand-written changes through decode, fold, apply, stage and publish."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from icestream.lake.catalog import TableSpec
from icestream.lake.history import Owner, cursor_property, cursor_summary, find_cursor
from icestream.lake.publish import Published, publish
from icestream.lake.session import Lake
from icestream.lake.stage import Stage
from icestream.lake.table import quote
from icestream.materialize.apply import BatchStats, apply, within_bounds
from icestream.materialize.batch import BatchMaker
from icestream.materialize.ownership import owner_property
from icestream.materialize.shape import Shape
from icestream.model.cursor import Cursor
from icestream.model.ids import new_id
from icestream.model.table import Relation, Target, WriteMode
from icestream.state.log_entries import LogEntry
from support.staging import Change, stage

DEFAULTS: dict[str, object] = {}  # of the target
OWNER = Owner("pipeline", "group")
EPOCH = "epoch-1"


class AppliedTable:
    def __init__(self, lake: Lake, root: Path, namespace: str, relation: Relation, **target: object) -> None:
        keys = tuple(column.name for column in relation.columns if column.is_key)
        options = {"primary_key": keys, **DEFAULTS, **target}
        self.target = Target(namespace, "t", **options)  # type: ignore[arg-type]
        self.relation = relation
        self.shape = Shape.of(relation, self.target)
        self._lake = lake
        self._root = root
        first = Cursor(EPOCH, 0, 0)
        properties = {**owner_property(OWNER), **cursor_property(first, None)}
        self.table = lake.catalog.create(namespace, "t", TableSpec.of(self.target, self.shape.columns, properties))
        self.session = lake.spark.newSession()
        self.letters: list[dict[str, object]] = []

    @property
    def cursor(self) -> Cursor:
        self.table.refresh()
        cursor = find_cursor(self.table, OWNER)
        assert cursor is not None
        return cursor

    def apply(self, changes: Sequence[Change], *, files: int = 1) -> BatchStats:
        """One batch, staged in `files` files, published."""
        start = self.cursor.offset
        size = -(-len(changes) // files)
        parts = [changes[first : first + size] for first in range(0, len(changes), size)]
        entries = []
        for part in parts:
            entries.append(stage(self._root, self.relation, part, start=start))
            start += len(part)
        return self.apply_entries(entries)

    def apply_entries(self, entries: Sequence[LogEntry]) -> BatchStats:
        cursor, base = self.cursor, self.table.head()
        maker = BatchMaker(self.session, str(self._root), self.shape, after=cursor.position)
        try:
            batch = maker.make(
                entries,
                {self.relation.version: self.relation},
                before=self._before,
                may_be_absent=self.target.skip_snapshot,
                by_equality=self.target.write_mode == WriteMode.EQUALITY,
            )
            if batch.stats.unfit or batch.stats.lost:
                self.letters += [dict(letter) for letter in maker.letters()]
            after = Cursor(EPOCH, entries[-1].end_offset, entries[-1].position)
            staging = Stage.begin(self.table, self.session, owner=OWNER, base=base, commit_id=new_id())
            apply(batch, staging, cursor_summary(OWNER, after))
        finally:
            maker.close()
        staged = staging.finish()
        published = publish(self.table, staged, cursor_property(after, staged.snapshots[-1]))
        assert published == Published(published.outcome.COMMITTED), published
        return batch.stats

    def rows(self) -> list[tuple[object, ...]]:
        keys = [quote(column.name) for column in self.shape.keys]
        return [tuple(row) for row in self._lake.spark.table(self.table.sql_name()).orderBy(*keys).collect()]

    def _before(self, wanted: DataFrame) -> DataFrame:
        rows = within_bounds(self.session.table(self.table.sql_name()), wanted, self.shape)
        return rows.select(
            F.struct(*(rows[quote(column.name)] for column in self.shape.keys)).alias("key"),
            F.struct(*(rows[quote(name)] for name in self.shape.names)).alias("row"),
        )
