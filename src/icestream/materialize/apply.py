"""A folded batch to the statements that bring it into the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from icestream.lake.stage import Stage
from icestream.lake.table import quote
from icestream.materialize.decode import key_is_whole
from icestream.materialize.shape import Shape
from icestream.model.columns import LakeColumn

_VIEW = "icestream_known_keys"

# For a key column, the least and the greatest value as SQL literals.
Bounds = Sequence[tuple[LakeColumn, str, str]]


@dataclass(frozen=True)
class BatchStats:
    """What a look at the folded batch tells: how much of what there is to do."""

    new: int
    known: int
    unfit: int
    lost: int
    bounds: Bounds


def look_at(folded: DataFrame, shape: Shape) -> BatchStats:
    new, known = is_new(shape), is_known(shape)
    lost = F.size("lost") > 0 if "lost" in folded.columns else F.lit(False)
    row: Row = folded.agg(
        F.count_if(new).alias("new"),
        F.count_if(known).alias("known"),
        F.count_if(F.col("unfit")).alias("unfit"),
        F.count_if(lost).alias("lost"),
        *_extremes(shape, known),
    ).collect()[0]
    bounds = _bounds(row, shape) if row["known"] else []
    return BatchStats(row["new"], row["known"], row["unfit"], row["lost"], bounds)


def within_bounds(rows: DataFrame, wanted: DataFrame, shape: Shape) -> DataFrame:
    """The rows of a table that may have one of the wanted keys (all whole); so Iceberg reads few of its files."""
    row: Row = wanted.agg(F.count("*").alias("wanted"), *_extremes(shape, F.lit(True))).collect()[0]
    if not row["wanted"]:
        return rows.filter(F.lit(False))
    ranges = [f"{quote(column.name)} BETWEEN {least} AND {most}" for column, least, most in _bounds(row, shape)]
    return reduce(lambda frame, condition: frame.filter(F.expr(condition)), ranges, rows)


def _extremes(shape: Shape, counts: Column) -> list[Column]:
    """The least and the greatest value of each key column whose order Iceberg shares, of the rows that count."""
    columns = []
    for number, column in enumerate(_ranged(shape)):
        value = F.when(counts, F.col("key").getField(column.name))
        columns.append(F.min(value).cast("string").alias(f"least_{number}"))
        columns.append(F.max(value).cast("string").alias(f"most_{number}"))
    return columns


def _bounds(row: Row, shape: Shape) -> Bounds:
    pairs = enumerate(_ranged(shape))
    return [(c, _literal(row[f"least_{n}"], c), _literal(row[f"most_{n}"], c)) for n, c in pairs]


def _ranged(shape: Shape) -> list[LakeColumn]:
    return [column for column in shape.keys if column.type.has_ordered_bounds]


def is_new(shape: Shape) -> Column:
    """Keys that can't have been in the table: they are appended without a look-up."""
    return key_is_whole(F.col("key"), shape) & (F.col("net") >= 1) & ~F.col("gone")


def is_known(shape: Shape) -> Column:
    """Keys with a row in the table. One that came and went within the batch (net 0, gone) is neither."""
    still_there = (F.col("net") == 0) & ~F.col("gone")
    return key_is_whole(F.col("key"), shape) & ((F.col("net") < 0) | still_there)


@dataclass(frozen=True)
class Batch:
    known: DataFrame  # keys with a row in the table: key, row, gone, missing
    new: DataFrame  # rows of keys that can't have been there, in the columns of the table
    shape: Shape
    stats: BatchStats
    toast: Sequence[str] = ()  # columns with an unchanged value somewhere in the batch
    empties_table: bool = False
    may_be_absent: bool = False  # updates may be of rows that were never copied
    by_equality: bool = False  # known rows are deleted by key, and those that stay are written anew


def apply(batch: Batch, stage: Stage, summary: Mapping[str, str]) -> None:
    """Write the batch to the stage, in as few parts as possible; the last one carries `summary`, in any case."""
    parts = _parts(batch, stage)
    try:
        for number, write in enumerate(parts, start=1):
            last = number == len(parts)
            write(f"{number}/{len(parts)}", summary if last else {})
    finally:
        batch.known.sparkSession.catalog.dropTempView(_VIEW)


def _parts(batch: Batch, stage: Stage) -> list[Callable[[str, Mapping[str, str]], None]]:
    parts: list[Callable[[str, Mapping[str, str]], None]] = []
    if batch.empties_table:
        parts.append(stage.delete_all)
    elif batch.stats.known and batch.by_equality:
        return [lambda part, summary: stage.replace(*_replacement(batch), part, summary)]
    elif batch.stats.known:
        statement = _merge_statement(batch, stage.sql_name)
        parts.append(lambda part, summary: stage.merge(statement, part, summary))
    if batch.stats.new:
        parts.append(lambda part, summary: stage.append(batch.new, part, summary))
    return parts or [stage.mark]


def _replacement(batch: Batch) -> tuple[DataFrame, DataFrame]:
    """The keys of rows that go, and the rows that come."""
    kept = batch.known.filter(~F.col("gone")).select("row.*")
    return batch.known.select("key.*"), kept.unionByName(batch.new) if batch.stats.new else kept


def _merge_statement(batch: Batch, target: str) -> str:
    """Matched clauses only: an inner join, which broadcasts the batch and reads just the key of the target."""
    batch.known.createOrReplaceTempView(_VIEW)
    keys = [f"t.{quote(column.name)} = s.`key`.{quote(column.name)}" for column in batch.shape.keys]
    condition = " AND ".join([*keys, *_ranges(batch.stats.bounds)])
    assignments = ", ".join(f"t.{quote(name)} = {_newest(name, batch.toast)}" for name in batch.shape.names)
    clauses = f"WHEN MATCHED AND s.gone THEN DELETE WHEN MATCHED THEN UPDATE SET {assignments}"
    if batch.may_be_absent:
        columns = ", ".join(quote(name) for name in batch.shape.names)
        values = ", ".join(f"s.`row`.{quote(name)}" for name in batch.shape.names)
        clauses += f" WHEN NOT MATCHED AND NOT s.gone THEN INSERT ({columns}) VALUES ({values})"  # noqa: S608
    return f"MERGE INTO {target} t USING {_VIEW} s ON {condition} {clauses}"


def _newest(name: str, toast: Sequence[str]) -> str:
    newest = f"s.`row`.{quote(name)}"
    if name not in toast:
        return newest
    return f"CASE WHEN array_contains(s.missing, {_text_literal(name)}) THEN t.{quote(name)} ELSE {newest} END"


def _ranges(bounds: Bounds) -> list[str]:
    """The batch's key range as literals lets Iceberg skip files that can't hold any of its keys."""
    return [f"t.{quote(column.name)} BETWEEN {least} AND {most}" for column, least, most in bounds]


def _literal(text: str, column: LakeColumn) -> str:
    return f"CAST({_text_literal(text)} AS {column.type.spark})"


def _text_literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
