"""A table in PostgreSQL against its Iceberg table, row by row, on Spark; a changelog is replayed first.

By another road than the rows came: the server counts them and sends its own text of every value, for the whole table
at once, and the text is read by the rules of the stream. So a range that was never copied is noticed, and a value that
was taken for one that does not fit.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Final

import psycopg
import pyarrow as pa
from psycopg import sql
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from icestream.errors import LakeError, SourceError
from icestream.lake.session import Lake
from icestream.lake.table import IcebergTable, quote
from icestream.materialize.decode import value_of
from icestream.materialize.replay import replay, replay_shape
from icestream.materialize.shape import Shape
from icestream.model.table import Relation, TableName, Target
from icestream.sources.postgres.catalog import SourceTable, list_tables, read_tables
from icestream.sources.postgres.connection import Connection, connect, pinned, querying, without_timeouts
from icestream.sources.postgres.ranges import at_snapshot

_BLOCK_SIZE: Final = 32 * 1024**2  # a row has to fit in
_PARTITIONED: Final = "p"


@dataclass(frozen=True)
class Comparison:
    """`different_rows` counts rows that are missing, extra, changed or doubled; a changed row counts once.

    `source_rows` are those that have a key the table can hold; the others are dead letters.
    """

    source_rows: int
    target_rows: int
    different_rows: int


def compare_table(lake: Lake, conninfo: str, source: TableName, target: Target) -> Comparison:
    """Compare as of now. The pipeline has to be at rest: changes on their way would count as differences."""
    table = lake.catalog.load(target.namespace, target.name)
    if table is None:
        raise LakeError(f"{target.key}: there is no such Iceberg table")
    with connect(conninfo) as connection, _exported_snapshot(connection) as snapshot, lake.session() as session:
        found = _find(connection, source)
        relation = found.relation()
        shape = replay_shape(relation, target) if target.is_changelog else Shape.of(relation, target)
        (counted,) = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(_rows_of(found))).fetchall()[0]
        texts = _as_text(session, pinned(conninfo), snapshot, found).persist()
        here = _comparable(_rows_in(table, session, target).select(*map(quote, shape.names))).persist()
        try:
            sent, there = texts.count(), _comparable(_decoded(texts, shape))
            missing, extra = there.exceptAll(here).count(), here.exceptAll(there).count()
            without_key = sent - there.count()
            return Comparison(counted - without_key, here.count(), max(missing, extra) + abs(counted - sent))
        finally:
            texts.unpersist()
            here.unpersist()


def _rows_in(table: IcebergTable, session: SparkSession, target: Target) -> DataFrame:
    rows = session.table(table.sql_name())
    return replay(rows, table.former_names()) if target.is_changelog else rows


def _comparable(rows: DataFrame) -> DataFrame:
    """Spark does not compare documents, only their texts."""
    documents = {field.name for field in rows.schema if isinstance(field.dataType, T.VariantType)}
    columns = ((name, rows[quote(name)]) for name in rows.columns)
    return rows.select(*(F.to_json(value).alias(name) if name in documents else value for name, value in columns))


@contextmanager
def _exported_snapshot(connection: Connection) -> Iterator[str]:
    without_timeouts(connection)
    with querying(), connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        (snapshot,) = connection.execute("SELECT pg_export_snapshot()").fetchall()[0]
        yield snapshot


def _find(connection: Connection, source: TableName) -> SourceTable:
    oids = [listed.oid for listed in list_tables(connection) if listed.name == source]
    found = read_tables(connection, oids)
    if not found:
        raise SourceError(f"there is no table {source} in the source")
    return found[0]


def _rows_of(table: SourceTable) -> sql.Composed:
    """Children of a plain table are tables of their own."""
    only = "{}" if table.kind == _PARTITIONED else "ONLY {}"
    return sql.SQL(only).format(sql.Identifier(table.name.schema, table.name.name))


def _as_text(session: SparkSession, conninfo: str, snapshot: str, table: SourceTable) -> DataFrame:
    """Every row as the server writes it, read in one piece by one task; columns are named by number."""
    relation = table.relation()
    query = _copy_statement(relation, _rows_of(table))
    names = [str(number) for number in range(len(relation.columns))]

    def read(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _texts(conninfo, snapshot, query, names)

    schema = T.StructType([T.StructField(name, T.StringType()) for name in names])
    return session.range(0, 1, 1, 1).mapInArrow(read, schema).repartition(session.sparkContext.defaultParallelism)


def _copy_statement(relation: Relation, rows: sql.Composed) -> bytes:
    columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in relation.columns)
    statement = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)").format(columns, rows)
    return statement.as_bytes(None)


def _texts(conninfo: str, snapshot: str, query: bytes, names: list[str]) -> Iterator[pa.RecordBatch]:
    from pyarrow import csv

    options = {
        "read_options": csv.ReadOptions(column_names=names, block_size=_BLOCK_SIZE, use_threads=False),
        "parse_options": csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        "convert_options": csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    }
    with at_snapshot(conninfo, snapshot) as connection, connection.cursor().copy(query) as sent:
        rows = io.BufferedReader(_Sent(sent), _BLOCK_SIZE)
        if rows.peek(1):  # the parser takes an empty file for a broken one
            yield from csv.open_csv(rows, **options)


class _Sent(io.RawIOBase):
    """What a COPY sends, row by row, as a file."""

    def __init__(self, sent: psycopg.Copy) -> None:
        self._sent = sent
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._rest = self._rest or bytes(self._sent.read())
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _decoded(texts: DataFrame, shape: Shape) -> DataFrame:
    """As the stream would have brought them: without rows whose key can't be held."""
    told = {column.name: F.col(quote(str(number))) for number, column in enumerate(shape.told)}
    own = (column.name if column.text_of is None else column.text_of.name for column in shape.columns)
    values = texts.select(
        *(value_of(told[name], column).alias(column.name) for name, column in zip(own, shape.columns, strict=True))
    )
    whole = (values[quote(column.name)].isNotNull() for column in shape.keys)
    return values.filter(reduce(lambda left, right: left & right, whole, F.lit(True)))
