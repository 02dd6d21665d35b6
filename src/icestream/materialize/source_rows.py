"""The rows of a source table at an exported snapshot, one range of pages at a time. Used inside of Spark tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Final

import pyarrow as pa

from icestream.model.changelog import CopyMark
from icestream.model.columns import LakeColumn, lake_columns
from icestream.model.copying import CopyRange
from icestream.model.table import Relation
from icestream.model.type_rules import DEFAULT_RULES, TypeRules
from icestream.sources.postgres import copy
from icestream.sources.postgres.copy import PageRange
from icestream.sources.postgres.ranges import RangeReader, at_snapshot, plan_ranges, reading

MOST_UNFIT: Final = 10_000  # values in a part
_LARGEST_PART: Final = 8 * 1024**2  # characters
_BEFORE_ALL: Final = "(0,0)"


@dataclass(frozen=True)
class SourceRows:
    """A table of the source as it is in a snapshot."""

    relation: Relation
    keys: tuple[str, ...]
    conninfo: str = field(repr=False)  # pinned; may contain a password
    snapshot: str
    rules: TypeRules = DEFAULT_RULES
    mark: CopyMark | None = None  # for a changelog

    @property
    def columns(self) -> tuple[LakeColumn, ...]:
        return lake_columns(self.relation, self.keys, self.rules)

    @property
    def schema(self) -> pa.Schema:
        return copy.arrow_schema(self.columns)

    @property
    def written_columns(self) -> tuple[LakeColumn, ...]:
        return self.columns if self.mark is None else (*self.mark.columns, *self.columns)

    @property
    def written_schema(self) -> pa.Schema:
        return copy.arrow_schema(self.written_columns)

    def written(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows as they are written: those of a changelog say where they come from."""
        if self.mark is None:
            return rows
        values, schema = self.mark.values(), self.written_schema
        marks = [pa.repeat(pa.scalar(values[name], schema.field(name).type), rows.num_rows) for name in values]
        return pa.RecordBatch.from_arrays([*marks, *rows.columns], schema=schema)

    def plan(self, pages: int) -> list[CopyRange]:
        """Raises CopySnapshotGone."""
        with at_snapshot(self.conninfo, self.snapshot) as connection:
            return plan_ranges(connection, self.relation.oid, pages=pages)


@dataclass(frozen=True)
class UnfitValue:
    """A value that its Iceberg column can't hold; `key` as JSON, `ctid` within its relation."""

    column: str
    relation: int
    ctid: str
    key: str
    text: str | None

    @property
    def place(self) -> str:
        return f"{self.relation} {self.ctid}"


@dataclass(frozen=True)
class UnfitPart:
    """Some of the unfit values of a range: as many as may be held in memory, and sent, at once."""

    values: tuple[UnfitValue, ...] = ()
    is_last: bool = True

    @property
    def end(self) -> UnfitValue | None:
        """Behind this one the next part begins; None: there is none."""
        return None if self.is_last else self.values[-1]


class RangeRows:
    """Reads a range once. Values that do not fit are NULL, rows whose key does not fit are left out.

    Raises CopySnapshotGone when the snapshot is lost, SourceReshaped when the table is no longer what it saw.
    """

    def __init__(
        self, source: SourceRows, pages: CopyRange, *, batch_size: int | None = None, most_unfit: int = MOST_UNFIT
    ) -> None:
        self._source = source
        self._pages = pages
        self._batch_size = batch_size
        self._most_unfit = most_unfit
        self.unfit = UnfitPart()  # the first one, known when all rows are read

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        source, schema, marked = self._source, self._source.schema, 0
        with reading(source.conninfo, source.snapshot, batch_size=self._batch_size) as reader:
            here = self._locked(reader)
            for batch in reader.batches(copy.range_query(source.columns, here)):
                marks = batch.column(batch.num_columns - 1).true_count
                rows = copy.conform(batch, schema)
                yield source.written(copy.with_whole_keys(rows, source.keys) if marks else rows)
                marked += marks
            if marked:
                self.unfit = self._part(reader, here)

    def find_unfit(self, behind: UnfitValue | None = None) -> UnfitPart:
        """Only those, without reading the rest."""
        with reading(self._source.conninfo, self._source.snapshot) as reader:
            return self._part(reader, self._locked(reader), behind)

    def _locked(self, reader: RangeReader) -> PageRange:
        return PageRange(reader.lock(self._pages.oid), self._pages.start, self._pages.end)

    def _part(self, reader: RangeReader, here: PageRange, behind: UnfitValue | None = None) -> UnfitPart:
        values, size = list[UnfitValue](), 0
        for value in self._unfit(reader, here, behind):
            values.append(value)
            size += len(value.key) + len(value.text or "")
            if len(values) == self._most_unfit or size >= _LARGEST_PART:
                return UnfitPart(tuple(values), is_last=False)
        return UnfitPart(tuple(values))

    def _unfit(self, reader: RangeReader, here: PageRange, behind: UnfitValue | None) -> Iterator[UnfitValue]:
        """Column by column; a part never takes more than a query gives."""
        columns = [column for column in self._source.columns if column.leaves_letters]
        if behind is not None:
            columns = list(dropwhile(lambda column: column.name != behind.column, columns))
        for column in columns:
            after = behind.ctid if behind is not None and behind.column == column.name else _BEFORE_ALL
            query = copy.unfit_query(self._source.columns, column, here, after, self._most_unfit)
            for batch in reader.batches(query):
                for ctid, key, text in zip(*(values.to_pylist() for values in batch.columns), strict=True):
                    yield UnfitValue(column.name, self._pages.oid, ctid, key, text)
