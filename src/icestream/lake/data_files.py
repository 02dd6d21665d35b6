"""Parquet files that tasks have written themselves, made part of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from icestream.lake.java import Java
from icestream.lake.table import Field, IcebergTable
from icestream.log.store import S3_SCHEMES, local_path
from icestream.model.copying import WrittenFile

_CODEC = "write.parquet.compression-codec"
_LEVEL = "write.parquet.compression-level"
_TARGET_SIZE = "write.target-file-size-bytes"
_FOLDERS = ("write.data.path", "write.folder-storage.path")
_FORMAT = "write.format.default"
_OBJECT_STORAGE = "write.object-storage.enabled"
_UNDERSTOOD = (_CODEC, _LEVEL)
# Properties that shape or place data files; of those, only the ones above are ours to follow.
_SHAPING = ("write.parquet.", "write.location-provider.", "encryption.")
_CODECS = {"zstd": "zstd", "gzip": "gzip", "snappy": "snappy", "uncompressed": "none", "none": "none"}
_ZSTD_LEVEL = 1  # the levels above cost more time than they save in size
_S3_FILE_IOS = ("S3FileIO", "ResolvingFileIO")
_FOOTERS_AT_ONCE = 8

_OWN_WRITER = re.compile("uuid|variant")  # types that Spark sees as something else than the file holds


@dataclass(frozen=True)
class FileLayout:
    """How tasks have to write the data files of a table. Travels to them."""

    folder: str  # as Iceberg names it
    codec: str
    level: int | None
    target_size: int | None  # None: the table does not say
    store: Mapping[str, str] = field(default_factory=dict, repr=False)  # may contain secrets


def file_layout(table: IcebergTable, fields: Sequence[Field] | None = None) -> FileLayout | None:
    """None: only Iceberg's own writers can do what the table asks for. `fields`: those it will have with the files."""
    java = table.java
    if any(_OWN_WRITER.search(column.type) for column in fields or table.fields()):
        return None
    if not java.spec().isUnpartitioned() or java.sortOrder().isSorted():
        return None
    layout = layout_of(table.properties(), java.location())
    return None if layout is None else _reachable(table, layout)


def files_of(table: IcebergTable) -> FileLayout | None:
    """Where files lie that need not be like the data files; None: only Iceberg can write there."""
    folder = _folder(table.properties(), table.java.location())
    return _reachable(table, FileLayout(folder, "zstd", _ZSTD_LEVEL, None))


def _reachable(table: IcebergTable, layout: FileLayout) -> FileLayout | None:
    """With what opens the store; None if tasks can't write there by themselves."""
    io = table.java.io()
    if local_path(layout.folder) is not None:
        return layout
    if not layout.folder.startswith(S3_SCHEMES) or io.getClass().getSimpleName() not in _S3_FILE_IOS:
        return None
    store = {str(key): str(value) for key, value in dict(io.properties()).items()}
    return replace(layout, store=store)


def layout_of(properties: Mapping[str, str], location: str) -> FileLayout | None:
    """What the properties say; None where one of them is not understood."""
    codec = _CODECS.get(properties.get(_CODEC, "zstd").lower())
    strange = [name for name in properties if name.startswith(_SHAPING) and name not in _UNDERSTOOD]
    is_parquet = properties.get(_FORMAT, "parquet").lower() == "parquet"
    if strange or codec is None or not is_parquet or properties.get(_OBJECT_STORAGE, "false").lower() == "true":
        return None
    level, size = properties.get(_LEVEL), properties.get(_TARGET_SIZE)
    default_level = _ZSTD_LEVEL if codec == "zstd" else None
    return FileLayout(
        _folder(properties, location),
        codec,
        default_level if level is None or codec in ("snappy", "none") else int(level),
        None if size is None else int(size),
    )


def _folder(properties: Mapping[str, str], location: str) -> str:
    folder = next((properties[name] for name in _FOLDERS if name in properties), f"{location.rstrip('/')}/data")
    return folder.rstrip("/")


def append_files(table: IcebergTable, branch: str, files: Sequence[WrittenFile], summary: Mapping[str, str]) -> None:
    append = table.java.newAppend().toBranch(branch)
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE, thread_name_prefix="footers") as threads:
        for data_file in threads.map(lambda file: _data_file(table, file), files):
            append.appendFile(data_file)
    for key, value in summary.items():
        append.set(key, value)
    append.commit()


def metrics_of(table: IcebergTable, file: WrittenFile) -> Java:
    """The column bounds from the file's footer, so that readers can skip it."""
    iceberg = table.jvm.org.apache.iceberg
    return iceberg.parquet.ParquetUtil.fileMetrics(
        table.java.io().newInputFile(file.path), iceberg.MetricsConfig.forTable(table.java)
    )


def _data_file(table: IcebergTable, file: WrittenFile) -> Java:
    iceberg = table.jvm.org.apache.iceberg
    return (
        iceberg.DataFiles.builder(table.java.spec())
        .withPath(file.path)
        .withFormat(iceberg.FileFormat.PARQUET)
        .withFileSizeInBytes(file.size)
        .withMetrics(metrics_of(table, file))
        .build()
    )
