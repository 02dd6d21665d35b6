"""What a Spark task does with a run of ranges of a first copy: straight from Arrow to Parquet, or to find dead letters.

Rows never pass through the JVM, which halves the time. What can go wrong in the source or the store comes back as a
value: an exception would cross from Python to Java and back as text.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from icestream.errors import (
    CopySnapshotGone,
    IcestreamError,
    SourceError,
    SourceForbidden,
    SourceReshaped,
    SourceUnavailable,
    StorageError,
)
from icestream.lake.data_files import FileLayout
from icestream.log.store import open_filesystem
from icestream.materialize.source_rows import MOST_UNFIT, RangeRows, SourceRows, UnfitPart, UnfitValue
from icestream.model.copying import CopyRange, RangeRun, WrittenFile
from icestream.model.ids import new_id

TARGET_SIZE = 128 * 1024**2
_BATCH_SIZE = 16 * 1024**2  # ADBC's own; smaller only where files have to be
_SMALLEST_BATCH = 64 * 1024
_FAILURES = (CopySnapshotGone, SourceReshaped, SourceForbidden, SourceUnavailable, SourceError, StorageError)

R = TypeVar("R")


@dataclass(frozen=True)
class RunTask:
    """Everything a task needs; travels to it."""

    source: SourceRows
    run: RangeRun
    name: str  # of the copy: its files begin with it
    layout: FileLayout
    field_ids: dict[str, int]
    most_unfit: int = MOST_UNFIT


@dataclass(frozen=True)
class WrittenRun:
    files: tuple[WrittenFile, ...]
    unfit: UnfitPart  # the first one


@dataclass(frozen=True)
class UnfitTask:
    """The next part of a range's unfit values; travels to the task."""

    source: SourceRows
    pages: CopyRange
    behind: UnfitValue | None = None
    most: int = MOST_UNFIT


@dataclass(frozen=True)
class RangeFailure:
    kind: str
    message: str

    def error(self) -> IcestreamError:
        kinds = {kind.__name__: kind for kind in _FAILURES}
        return kinds[self.kind](self.message)


def write_run(task: RunTask) -> WrittenRun | RangeFailure:
    return _without_raising(lambda: _write(task))


def find_unfit(task: UnfitTask) -> UnfitPart | RangeFailure:
    rows = RangeRows(task.source, task.pages, most_unfit=task.most)
    return _without_raising(lambda: rows.find_unfit(task.behind))


def remove_files(files: tuple[WrittenFile, ...], layout: FileLayout) -> None:
    """Of runs that count for nothing. One that is gone is fine; what can't be removed is an orphan."""
    store, folder = open_filesystem(layout.folder, layout.store)
    for file in files:
        with suppress(OSError):
            store.delete_file(f"{folder}/{file.path.rpartition('/')[2]}")


def _without_raising(work: Callable[[], R]) -> R | RangeFailure:
    try:
        return work()
    except _FAILURES as err:
        kind = next(kind for kind in _FAILURES if isinstance(err, kind))
        return RangeFailure(kind.__name__, str(err))
    except OSError as err:  # of the store: ADBC has errors of its own
        return RangeFailure(StorageError.__name__, f"a data file cannot be written: {err.strerror or err}")


def _write(task: RunTask) -> WrittenRun:
    target = task.layout.target_size or TARGET_SIZE
    batch_size = max(_SMALLEST_BATCH, min(_BATCH_SIZE, target))
    rows = RangeRows(task.source, task.run.pages, batch_size=batch_size, most_unfit=task.most_unfit)
    files = _Files(task, target)
    try:
        for batch in rows:
            files.write(batch)
        files.finish()
    except BaseException:
        files.drop()
        raise
    return WrittenRun(tuple(files.written), rows.unfit)


class _Files:
    """The files of one run: each is closed when it has reached its size."""

    def __init__(self, task: RunTask, target_size: int) -> None:
        self._task = task
        self._target_size = target_size
        self._schema = _with_field_ids(task.source.written_schema, task.field_ids)
        self._store, self._folder = open_filesystem(task.layout.folder, task.layout.store)
        self._name = ""
        self._sink: Any = None
        self._writer: Any = None
        self._records = 0
        self.written: list[WrittenFile] = []

    def write(self, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        if self._writer is None:
            self._begin()
        self._writer.write_batch(pa.RecordBatch.from_arrays(rows.columns, schema=self._schema))
        self._records += rows.num_rows
        if self._sink.tell() >= self._target_size:
            self.finish()

    def finish(self) -> None:
        """Closes the file that is open, if any."""
        if self._writer is None:
            return
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        self.written.append(WrittenFile(f"{self._task.layout.folder}/{self._name}", size, self._records))
        self._writer = self._sink = None

    def drop(self) -> None:
        """Removes everything of this run."""
        with suppress(OSError):
            self._store.delete_file(f"{self._folder}/{self._name}")
        remove_files(tuple(self.written), self._task.layout)

    def _begin(self) -> None:
        import pyarrow.parquet as pq
        from pyarrow import fs

        if isinstance(self._store, fs.LocalFileSystem):
            self._store.create_dir(self._folder, recursive=True)
        self._name = f"{self._task.name}-{self._task.run.numbers[0]:05d}-{new_id()}.parquet"
        self._records = 0
        self._sink = self._store.open_output_stream(f"{self._folder}/{self._name}")
        texts = [field.name for field in self._schema if field.type == pa.string()]
        layout = self._task.layout
        self._writer = pq.ParquetWriter(
            self._sink,
            self._schema,
            compression=layout.codec,
            compression_level=layout.level,
            use_dictionary=texts or False,
        )


def _with_field_ids(schema: pa.Schema, field_ids: dict[str, int]) -> pa.Schema:
    return pa.schema([_with_field_id(field, field.name, field_ids) for field in schema])


def _with_field_id(field: pa.Field, path: str, field_ids: dict[str, int]) -> pa.Field:
    if pa.types.is_list(field.type):
        field = field.with_type(pa.list_(_with_field_id(field.type.value_field, f"{path}.element", field_ids)))
    return field.with_metadata({b"PARQUET:field_id": str(field_ids[path]).encode()})
