"""Deletes by key: Parquet files of key columns that tasks write themselves, since Spark has no writer for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from pyspark.sql import DataFrame

from icestream.errors import LakeError
from icestream.lake.data_files import FileLayout, files_of, metrics_of
from icestream.lake.java import Java
from icestream.lake.layout import global_spec
from icestream.lake.table import IcebergTable
from icestream.log.store import open_filesystem
from icestream.model.copying import WrittenFile
from icestream.model.ids import new_id

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class _KeyColumn:
    name: str
    field_id: int
    is_uuid: bool  # Spark sees it as text, the file holds its sixteen bytes

    def stored(self, keys: pa.Array) -> pa.Array:
        import pyarrow as pa

        if not self.is_uuid:
            return keys
        octets = pa.array([UUID(text).bytes for text in keys.to_pylist()], pa.binary(16))
        return pa.ExtensionArray.from_storage(pa.uuid(), octets)

    def field(self, kind: pa.DataType) -> pa.Field:
        import pyarrow as pa

        return pa.field(self.name, kind, nullable=False, metadata={b"PARQUET:field_id": str(self.field_id).encode()})


_WRITTEN = "path string, size bigint, records bigint"


def write_keys(table: IcebergTable, keys: DataFrame) -> list[WrittenFile]:
    """The keys (a frame of the key columns), each once, as files that nothing refers to yet; one per task."""
    layout = files_of(table)
    if layout is None:
        raise LakeError(
            f"{table.key}: deletes by key can be written to a local folder or an S3 store only",
            hint="choose another `write_mode` for the table",
        )
    fields = {field.name: field for field in table.fields()}
    columns = [_KeyColumn(name, fields[name].id, fields[name].type == "uuid") for name in keys.columns]
    # By number: mapInArrow takes a dot or a back-tick in a name for syntax.
    numbered = keys.toDF(*(str(number) for number in range(len(columns))))
    rows = numbered.mapInArrow(_writer(layout, columns), _WRITTEN).collect()
    return [WrittenFile(row["path"], row["size"], row["records"]) for row in rows]


def replace_rows(
    table: IcebergTable,
    branch: str,
    keys: tuple[Sequence[str], Sequence[WrittenFile]],
    data: Iterable[Java],
    summary: Mapping[str, str],
) -> None:
    """One snapshot that deletes by key and adds rows; what it adds is younger than what it deletes."""
    names, files = keys
    delta = table.java.newRowDelta().toBranch(branch)
    for file in data:
        delta.addRows(file)
    for written in files:
        delta.addDeletes(_delete_file(table, names, written))
    for key, value in summary.items():
        delta.set(key, value)
    delta.commit()


def _delete_file(table: IcebergTable, names: Sequence[str], file: WrittenFile) -> Java:
    iceberg, ids = table.jvm.org.apache.iceberg, table.field_ids()
    array = table.jvm.java.lang.reflect.Array
    field_ids = array.newInstance(table.jvm.java.lang.Integer.TYPE, len(names))
    for index, name in enumerate(names):
        array.setInt(field_ids, index, ids[name])
    return (
        iceberg.FileMetadata.deleteFileBuilder(global_spec(table))
        .ofEqualityDeletes(field_ids)
        .withPath(file.path)
        .withFormat(iceberg.FileFormat.PARQUET)
        .withFileSizeInBytes(file.size)
        .withMetrics(metrics_of(table, file))
        .build()
    )


def _writer(
    layout: FileLayout, columns: Sequence[_KeyColumn]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        written = _write_file((batch for batch in batches if batch.num_rows), layout, columns)
        if written is not None:
            values = [pa.array([value]) for value in (written.path, written.size, written.records)]
            yield pa.RecordBatch.from_arrays(values, ["path", "size", "records"])

    return write


def _write_file(
    batches: Iterator[pa.RecordBatch], layout: FileLayout, columns: Sequence[_KeyColumn]
) -> WrittenFile | None:
    """None where there are no keys."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import fs

    store, folder = open_filesystem(layout.folder, layout.store)
    if isinstance(store, fs.LocalFileSystem):
        store.create_dir(folder, recursive=True)
    name, records, writer, sink = f"icestream-keys-{new_id()}.parquet", 0, None, None
    for batch in batches:
        arrays = [column.stored(keys) for column, keys in zip(columns, batch.columns, strict=True)]
        schema = pa.schema([column.field(keys.type) for column, keys in zip(columns, arrays, strict=True)])
        if writer is None:
            sink = store.open_output_stream(f"{folder}/{name}")
            writer = pq.ParquetWriter(sink, schema, compression=layout.codec, compression_level=layout.level)
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
        records += batch.num_rows
    if writer is None or sink is None:
        return None
    writer.close()
    size = sink.tell()
    sink.close()
    return WrittenFile(f"{layout.folder}/{name}", size, records)
