"""A changelog (`write_mode: append`) back to the rows that its source table has: every change once, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from icestream.lake.table import quote
from icestream.materialize.decode import key_is_whole
from icestream.materialize.fold import fold
from icestream.materialize.key_steps import key_steps
from icestream.materialize.moved import fill_moved
from icestream.materialize.shape import Shape
from icestream.model import change, changelog
from icestream.model.change import Op
from icestream.model.columns import LakeColumn
from icestream.model.table import Profile, Relation, Target
from icestream.model.types import STRING

_ANYTHING = Profile(rekeyed=1, unchanged=1)


@dataclass(frozen=True)
class _Run:
    """Changes in a row whose old rows are named by the same columns; by all, if there are none."""

    key: tuple[str, ...]
    first: Any  # place of its first change


def replay_shape(relation: Relation, target: Target) -> Shape:
    """The rows of a changelog, and by which columns the newest of its changes name theirs."""
    columns = Shape.of(relation, target).columns
    return Shape(tuple(replace(column, is_key=column.name in relation.naming) for column in columns))


def replay(rows: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """`rows` of a changelog to those of the source; documents become texts.

    `names`: how columns are called now that had another name once.
    """
    alive = _after_truncate(_as_structs(rows, names))
    state = alive.filter(F.lit(False)).select("row")
    runs = _runs(alive)
    for number, run in enumerate(runs):
        upper = runs[number + 1].first if number + 1 < len(runs) else None
        state = _applied(state, _between(alive, run.first, upper), run.key)
    return state.select("row.*")


def _as_structs(rows: DataFrame, names: Mapping[str, str]) -> DataFrame:
    own = [name for name in rows.columns if name not in changelog.NAMES]
    op, before = F.col(change.OP), F.col(changelog.BEFORE)
    return rows.select(
        F.struct(change.LSN, changelog.OFFSET).alias("place"),
        F.when(op == changelog.READ, Op.INSERT).otherwise(op).alias("op"),
        F.struct(*(_plain(rows[quote(name)], rows, name).alias(name) for name in own)).alias("row"),
        F.when(
            before.isNotNull(), F.struct(*(_plain(before.getField(name), rows, name).alias(name) for name in own))
        ).alias("before"),
        _renamed(F.col(change.UNCHANGED), names).alias("unchanged"),
        F.coalesce(_renamed(F.col(changelog.KEY), names), F.array().cast("array<string>")).alias("named_by"),
    )


def _plain(value: Column, rows: DataFrame, name: str) -> Column:
    """Spark does not compare documents, only their texts."""
    return F.to_json(value) if isinstance(rows.schema[name].dataType, T.VariantType) else value


def _renamed(columns: Column, names: Mapping[str, str]) -> Column:
    if not names:
        return columns
    now = F.create_map(*(F.lit(part) for pair in names.items() for part in pair))
    return F.transform(columns, lambda name: F.coalesce(F.try_element_at(now, name), name))


def _after_truncate(changes: DataFrame) -> DataFrame:
    (last,) = changes.filter(F.col("op") == Op.TRUNCATE).agg(F.max("place")).collect()[0]
    return changes if last is None else changes.filter(F.col("place") > _place(last))


def _runs(changes: DataFrame) -> list[_Run]:
    """Mostly one: a table seldom gets another key."""
    keys = changes.groupBy("named_by").agg(F.min("place").alias("first")).collect()
    if len(keys) > 1:
        earlier = Window.orderBy("place")
        changed = F.col("named_by") != F.lag("named_by").over(earlier)
        marked = changes.select("named_by", "place", F.coalesce(changed, F.lit(True)).alias("changed"))
        keys = marked.filter("changed").select("named_by", F.col("place").alias("first")).collect()
    return sorted((_Run(tuple(row["named_by"]), row["first"]) for row in keys), key=lambda run: tuple(run.first))


def _between(changes: DataFrame, first: Any, upper: Any | None) -> DataFrame:
    later = changes.filter(F.col("place") >= _place(first))
    return later if upper is None else later.filter(F.col("place") < _place(upper))


def _place(row: Any) -> Column:
    return F.struct(*(F.lit(row[name]).cast("bigint").alias(name) for name in (change.LSN, changelog.OFFSET)))


def _applied(state: DataFrame, changes: DataFrame, key: Sequence[str]) -> DataFrame:
    there = state.select(
        F.lit(changelog.BEGINNING_OFFSET).cast("bigint").alias("offset"),
        F.lit(Op.INSERT.value).alias("op"),
        "row",
        F.lit(None).cast(changes.schema["before"].dataType).alias("before"),
        F.lit(None).cast("array<string>").alias("unchanged"),
    )
    new = changes.select(F.col(f"place.{changelog.OFFSET}").alias("offset"), "op", "row", "before", "unchanged")
    return _by_key(there.unionByName(new), key) if key else _by_row(there.unionByName(new))


def _by_key(changes: DataFrame, key: Sequence[str]) -> DataFrame:
    shape = Shape(tuple(_columns(changes, key)))

    def key_of(row: str) -> Column:
        return F.struct(*(F.col(row).getField(column.name).alias(column.name) for column in shape.keys))

    keyed = changes.select(
        *("offset", "op", "row", "unchanged"),
        key_of("row").alias("key"),
        F.when(F.col("before").isNotNull(), key_of("before")).alias("old_key"),
        F.lit(False).alias("unfit"),
    ).filter(key_is_whole(F.col("key"), shape))
    happened = key_steps(keyed, shape, _ANYTHING)
    toast = [name for name in shape.names if name in _unchanged_columns(keyed)]
    folded = fold(happened, shape, toast)
    if toast:
        nothing = keyed.select("key", "row").filter(F.lit(False))
        folded = fill_moved(folded, happened, lambda _: nothing, shape, toast)
    return folded.filter(~F.col("gone")).select("row")


def _columns(changes: DataFrame, key: Sequence[str]) -> Iterator[LakeColumn]:
    row = changes.schema["row"].dataType
    assert isinstance(row, T.StructType)
    for field in row:
        yield LakeColumn(field.name, STRING, is_key=field.name in key)


def _unchanged_columns(changes: DataFrame) -> set[str]:
    return {row[0] for row in changes.select(F.explode("unchanged")).distinct().collect()}


def _by_row(changes: DataFrame) -> DataFrame:
    """A change tells its whole old row, if there is one: rows are there as often as they came and did not go."""
    came = changes.filter(F.col("op") != Op.DELETE).select("row", F.lit(1).alias("times"))
    went = changes.filter(F.col("op") != Op.INSERT).select(F.col("before").alias("row"), F.lit(-1).alias("times"))
    counted = came.unionByName(went).groupBy("row").agg(F.sum("times").cast("int").alias("times"))
    left = counted.filter(F.col("row").isNotNull() & (F.col("times") > 0))
    return left.select("row", F.explode(F.sequence(F.lit(1), "times"))).select("row")
