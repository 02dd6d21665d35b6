"""The same table read by engines that share no code: Spark, PyIceberg and DuckDB."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from icestream.lake.session import Lake
from icestream.lake.table import quote
from support.cases import Rows, in_order
from support.duck import duckdb_rows

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_LONGEST = 200


@dataclass(frozen=True)
class SparkRead:
    texts: Rows  # the names of the columns, then the rows, as Spark writes them as text; long ones are cut
    rows: Counter[str]
    documents: Counter[str] | None  # of a table with VARIANT columns, which PyIceberg can't read: its rows as texts


class Readers:
    def __init__(self, lake: Lake, warehouse: Path) -> None:
        self._lake = lake
        self._catalog = SqlCatalog("icestream", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))

    def by_spark(self, namespace: str, table: str) -> SparkRead:
        """Values and texts in one go: for small tables it is the number of jobs that costs time."""
        frame = self._lake.spark.table(f"{quote(namespace)}.{quote(table)}")
        fields = [(frame[quote(field.name)], field.dataType) for field in frame.schema]
        values = [_comparable(column, kind).alias(f"value {n}") for n, (column, kind) in enumerate(fields)]
        texts = [_text(column, kind).alias(f"text {n}") for n, (column, kind) in enumerate(fields)]
        read, names = frame.select(*values, *texts).toArrow(), frame.columns
        rows = list(zip(*(column.to_pylist() for column in read.columns[len(names) :]), strict=True))
        escaped = [tuple(map(_escaped, row)) for row in (names, *rows)]
        has_documents = any(isinstance(kind, T.VariantType) for _, kind in fields)
        told = _told(names, rows) if has_documents else None
        return SparkRead(in_order(escaped), _counted(names, read.columns[: len(names)]), told)

    def by_pyiceberg(self, namespace: str, table: str) -> Counter[str]:
        read = self._catalog.load_table((namespace, table)).scan().to_arrow()
        return _counted(read.column_names, read.columns)

    def by_duckdb(self, namespace: str, table: str) -> Counter[str]:
        """To be compared with `SparkRead.documents`."""
        found = self._lake.catalog.load(namespace, table)
        assert found is not None
        names, *rows = duckdb_rows(str(found.metadata().metadataFileLocation()))
        return _told([str(name) for name in names], rows)


def _comparable(column: Column, kind: T.DataType) -> Column:
    return F.to_json(column) if isinstance(kind, T.VariantType) else column


def _counted(names: Sequence[str], read: Sequence[pa.ChunkedArray]) -> Counter[str]:
    """Each row as a text that does not depend on how an engine lays out a type, with how often it is there."""
    columns = [[_plain(value) for value in column.to_pylist()] for column in read]
    return Counter(repr(dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True))


def _told(names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> Counter[str]:
    """Rows of texts; what is JSON in them counts by what it says."""
    return Counter(repr(dict(zip(names, map(_read_json, row), strict=True))) for row in rows)


def _read_json(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text.replace("NULL", "null")


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(element) for element in value]
    return str(value) if isinstance(value, UUID) else value


def _text(column: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.BinaryType):
        return F.concat(F.lit("0x"), F.hex(column))
    if isinstance(kind, T.VariantType):
        return F.to_json(column)
    if isinstance(kind, T.ArrayType):
        return F.transform(column, lambda element: _text(element, kind.elementType)).cast("string")
    return column.cast("string")


def _escaped(value: str | None) -> str:
    if value is None:
        return "\\N"
    if len(value) > _LONGEST:
        value = f"{value[:12]}… ({len(value)})"
    return "".join(_ESCAPES.get(letter, letter) for letter in value)
