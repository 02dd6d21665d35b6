"""The first copy of a table: read at the exported snapshot, invisible until complete, handed over to the stream.

 step               what                                                       a crash right after it
 1 table created    with its owner and a first cursor that says "not copied"   the next attempt finds it and goes on
 2 ranges planned   by pages, for good                                         the next attempt finds the same ranges
 3 range written    by a Spark task, to files that nothing refers to           the range is read again
 4 range noted      with its files                                             only the other ranges are left
 5 copy staged      all files, to a branch nobody reads                        the next attempt drops the branch
 6 copy published   rows and cursor (the snapshot's position) in one commit    the next attempt sees the cursor
 7 copy completed   the table is live                                          the table wins

Partitioned and sorted tables, and those with properties that only Iceberg's writers know, are written by Spark in one
piece; then 3 and 4 are part of 5. Changes that commit after the snapshot's position wait in the log; cycles skip what
the copy already contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from icestream.errors import (
    CopySnapshotGone,
    IcestreamError,
    LakeUnavailable,
    SourceForbidden,
    SourceReshaped,
    TableParked,
)
from icestream.lake.catalog import TableSpec
from icestream.lake.commit import Commit
from icestream.lake.data_files import FileLayout, file_layout
from icestream.lake.evolution import evolve, halves, planned_schema
from icestream.lake.history import OWNER, Owner, copies_in, cursor_property, cursor_summary, find_cursor
from icestream.lake.java import JAVA_ERRORS, error_message
from icestream.lake.layout import Layout, settle_layout, stored_layout
from icestream.lake.next_columns import NextColumns, reserve
from icestream.lake.session import Lake
from icestream.lake.stage import Stage
from icestream.lake.table import IcebergTable, quote
from icestream.lake.tasks import copying_beside_cycles
from icestream.materialize.changelog import beginning, with_nulls
from icestream.materialize.evolve import columns_of, columns_property, plan_replacement
from icestream.materialize.ownership import owner_property, require_kind, require_owner
from icestream.materialize.range_copy import CopyTools, RangeCopy
from icestream.materialize.range_tasks import remove_files
from icestream.materialize.shape import Shape, row_fields
from icestream.materialize.source_rows import RangeRows, SourceRows
from icestream.materialize.values import typed
from icestream.model.columns import LakeColumn
from icestream.model.copying import CopyRange, WrittenFile
from icestream.model.cursor import Cursor
from icestream.model.position import Lsn
from icestream.model.table import Target
from icestream.model.types import Kind
from icestream.observe.steps import reached


@dataclass(frozen=True)
class CopyRequest:
    """What to copy and where from: the offer that capture holds open."""

    log_key: str  # the name under which the log and the letters know the table
    target: Target
    source: SourceRows
    position: int
    offset: int  # the first offset of the log that is still there
    epoch: str
    requested: int = 0  # the position at which a person asked for another copy: what is there already goes

    @property
    def lsn(self) -> Lsn:
        return Lsn(self.position)

    @property
    def replaces(self) -> bool:
        return self.requested > 0

    def is_answered_by(self, cursor: Cursor | None) -> bool:
        """Whether a table with this cursor holds the copy already: only the note in the state was lost."""
        return cursor is not None and cursor.epoch == self.epoch and cursor.copied and cursor.copied_at > self.requested


@dataclass(frozen=True)
class Copied:
    cursor: Cursor
    rows: int
    snapshot_id: int | None


def first_copy(lake: Lake, owner: Owner, request: CopyRequest, tools: CopyTools) -> Copied:
    """Copy one table. May be repeated at any time, and goes on where it was left.

    Raises CopySnapshotGone or SourceReshaped when a new snapshot is needed.
    """
    shape = Shape.of(request.source.relation, request.target)
    table = lake.catalog.load(request.target.namespace, request.target.name)
    if table is None:  # what was noted of a table that somebody dropped meanwhile is gone with it
        tools.progress.forget(request.log_key, request.lsn)
        table = _create(lake, owner, request, shape)
    reached("table created")
    base, done = table.head(), find_cursor(table, owner)
    if done is None or not request.is_answered_by(done):
        _require_replaceable(table, owner, request)
        with lake.session() as session:
            done = _copy(Commit(table, session, owner, base), request, tools)
    _clear_away(table, request.log_key, tools, Lsn(done.copied_at))
    return Copied(done, _row_count(table), table.head())


def begin_without_copy(lake: Lake, owner: Owner, request: CopyRequest) -> None:
    """The empty table of a source table whose rows are not wanted (`skip_snapshot`), with a cursor to go on from."""
    shape = Shape.of(request.source.relation, request.target)
    table = lake.catalog.load(request.target.namespace, request.target.name)
    if table is None:
        table = _create(lake, owner, request, shape, copied=True)
    cursor = find_cursor(table, owner)
    if cursor is not None and cursor.position < request.requested:
        raise TableParked(
            f"{table.key}: changes since {cursor.lsn} are missing, and its rows are not to be copied",
            hint=f"drop the Iceberg table, then run `icestream resync {table.key}`",
        )


def _copy(commit: Commit, request: CopyRequest, tools: CopyTools) -> Cursor:
    outlet, table = _outlet(commit.table, request), commit.table
    if outlet.columns is not None and outlet.columns.is_new:  # files that were written before have other ids
        tools.progress.forget(request.log_key, request.lsn)
    shape = Shape.of(request.source.relation, request.target)
    ranges = RangeCopy(tools, request.log_key, request.epoch, request.lsn, request.source, shape)
    files: list[WrittenFile] = []
    if outlet.layout is not None:
        files = ranges.write(outlet.layout, table.field_ids(outlet.columns.schema(table) if outlet.columns else None))
    cursor = Cursor(request.epoch, request.offset, request.position, copied_at=request.position)

    def write(stage: Stage) -> None:
        parts = 2 if request.replaces and commit.base is not None else 1
        if parts == 2:
            _clear(stage, commit, request)
        part, summary = f"{parts}/{parts}", cursor_summary(commit.owner, cursor)
        if outlet.layout is None:
            _append(stage, commit, request, outlet, ranges, part, summary)
        else:
            stage.append_files(files, part, summary)
        reached("copy staged")

    def properties(snapshot_id: int) -> dict[str, str]:
        columns = columns_property(columns_of(request.source.relation))
        return {**cursor_property(cursor, snapshot_id), **owner_property(commit.owner), **columns}

    commit.make(write, properties, outlet.columns)
    reached("copy published")
    table.refresh()
    return cursor


def _clear(stage: Stage, commit: Commit, request: CopyRequest) -> None:
    """What is there goes. Of a changelog it stays, where the copy can be put behind it, and is marked as over."""
    done = find_cursor(commit.table, commit.owner)
    is_orderable = done is not None and done.epoch == request.epoch and done.position <= request.position
    if request.target.is_changelog and is_orderable:
        stage.append(beginning(commit.session, commit.table, request.position), "1/2", {})
    else:
        stage.delete_all("1/2", {})


@dataclass(frozen=True)
class _Outlet:
    """How rows get into a table that may have other columns until they are published."""

    layout: FileLayout | None  # None: only Spark's own writer can do it
    columns: NextColumns | None = None  # None: it has the columns already
    hidden: Mapping[str, str] = field(default_factory=dict)  # the name until then of columns that are new

    def renamed(self, rows: DataFrame) -> DataFrame:
        """Under the names that the columns have until then."""
        return rows.select(*(rows[quote(name)].alias(self.hidden.get(name, name)) for name in rows.columns))


def _outlet(table: IcebergTable, request: CopyRequest) -> _Outlet:
    """Readers see the columns change together with the rows; those of a table without rows change at once.

    And so do those of a table that gets another layout, which may be by one of them, and of a changelog, whose rows
    stay.
    """
    fields, wanted = row_fields(table.fields(), request.target), Layout.of(request.target)
    change = plan_replacement(fields, request.source.relation, request.target)
    is_needed, is_apart = change.is_needed(table), table.head() is not None and not request.target.is_changelog
    if not is_needed or not is_apart or stored_layout(table) != wanted:
        if is_needed:
            evolve(table, change, {})
        settle_layout(table, wanted)
        return _Outlet(file_layout(table))
    layout = file_layout(table, table.fields(planned_schema(table, change)))
    if layout is not None:
        return _Outlet(layout, reserve(table, change, str(request.lsn)))
    first, second = halves(change, {column.name for column in table.fields()})
    evolve(table, first, {})
    hidden = {name: until_then for until_then, name in second.renamed.items()}
    return _Outlet(None, reserve(table, second, f"{request.lsn} by Spark"), hidden)


def _append(
    stage: Stage,
    commit: Commit,
    request: CopyRequest,
    outlet: _Outlet,
    ranges: RangeCopy,
    part: str,
    summary: dict[str, str],
) -> None:
    """All ranges in one piece, by Spark's own writer."""
    planned = ranges.plan()
    rows = outlet.renamed(_as_frame(commit.session, request.source, planned))
    try:
        with copying_beside_cycles(commit.session):
            stage.append(with_nulls(rows, commit.session, commit.table), part, summary)
    except JAVA_ERRORS as err:
        raise _failure(request, error_message(err), str(err)) from err
    except LakeUnavailable as err:
        raise _failure(request, str(err), str(err.__cause__)) from err
    ranges.note_unfit(planned)


def _as_frame(session: SparkSession, source: SourceRows, ranges: list[CopyRange]) -> DataFrame:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from RangeRows(source, ranges[number])

    numbers = session.range(0, len(ranges), 1, max(1, len(ranges)))
    return _with_documents(numbers.mapInArrow(read, _spark_schema(source.written_columns)), source.columns)


def _spark_schema(columns: Sequence[LakeColumn]) -> T.StructType:
    """As the tasks read it: documents are still texts."""
    types = {column.name: "string" if column.type.kind is Kind.VARIANT else column.type.spark for column in columns}
    return T.StructType([T.StructField(name, T.DataType.fromDDL(type_)) for name, type_ in types.items()])


def _with_documents(texts: DataFrame, columns: Sequence[LakeColumn]) -> DataFrame:
    documents = {c.name: typed(texts[quote(c.name)], c.type) for c in columns if c.type.kind is Kind.VARIANT}
    return texts.withColumns(documents) if documents else texts


def _failure(request: CopyRequest, message: str, details: str) -> IcestreamError:
    # A task's error crosses from Python to Java and back as text; our class name in it is all that is left.
    if CopySnapshotGone.__name__ in details:
        return CopySnapshotGone(f"{request.target.key}: the snapshot {request.source.snapshot} is gone")
    if SourceReshaped.__name__ in details:
        return SourceReshaped(f"{request.target.key}: the source table was altered since the snapshot of its copy")
    if SourceForbidden.__name__ in details:
        return SourceForbidden("the source table may not be read, or not whole (row-level security)")
    return LakeUnavailable(f"{request.target.key}: the first copy failed: {message}")


def _clear_away(table: IcebergTable, key: str, tools: CopyTools, published: Lsn) -> None:
    """Forgets the ranges of this copy, and removes the files of those that were given up before it.

    Not sooner: whoever still works on one of those could have published it until now.
    """
    layout, in_table = file_layout(table), copies_in(table)
    for position, ranges in tools.progress.copies(key).items():
        if position > published:
            continue
        tools.progress.forget(key, position)
        if layout is not None and position not in in_table:
            remove_files(tuple(file for pages in ranges for file in pages.files or ()), layout)


def _create(lake: Lake, owner: Owner, request: CopyRequest, shape: Shape, *, copied: bool = False) -> IcebergTable:
    target = request.target
    position = request.position if copied else 0
    first = Cursor(request.epoch, request.offset, position, copied, position)
    columns = columns_property(columns_of(request.source.relation))
    properties = {**owner_property(owner), **cursor_property(first, None), **columns}
    return lake.catalog.create(target.namespace, target.name, TableSpec.of(target, shape.columns, properties))


def _require_replaceable(table: IcebergTable, owner: Owner, request: CopyRequest) -> None:
    """Rows that somebody else, or an earlier life of this pipeline, has written are never overwritten unasked."""
    if table.properties().get(OWNER) is not None:
        require_owner(table, owner)
    if table.head() is not None and not request.replaces:
        raise TableParked(
            f"{table.key}: the Iceberg table already holds rows that are not from epoch {request.epoch}",
            hint=f"icestream resync {table.key}  (replaces them), or choose another namespace",
        )
    require_kind(table, request.target)


def _row_count(table: IcebergTable) -> int:
    head = table.head()
    snapshot = None if head is None else table.snapshot(head)
    return 0 if snapshot is None else int(snapshot.summary.get("total-records", "0"))
