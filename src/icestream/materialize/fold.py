"""Many steps of a key to one: what exists afterwards is what existed before plus `net`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from icestream.materialize.key_steps import ALTERED, APPEARS, DISAPPEARS
from icestream.materialize.shape import Shape


def fold(steps: DataFrame, shape: Shape, toast: Sequence[str]) -> DataFrame:
    """One row per key:

    net        rows that came minus rows that went: 1 new, 0 still there, -1 gone
    gone       the key has no row after the batch
    row        its newest image
    missing    the columns (out of `toast`) whose value was sent neither by this batch's newest image nor before it;
               an earlier value is never taken from beyond a step in which the row appeared or disappeared
    from_key, appeared   where and when the row came from another key, for those that did
    lost       the columns whose value nobody knows
    last       place of the newest step in the log
    unfit      whether any step had a value that the table can't hold
    """
    if not shape.full_identity:
        return _fold_by_last(steps, toast)
    crossed, plain = _split_by_crossing(steps)
    return _fold_by_last(plain, toast).unionByName(_fold_in_order(crossed))


def nothing_to_fold(steps: DataFrame) -> DataFrame:
    """The same columns for a batch in which every key has exactly one step."""
    return steps.select(
        "key",
        F.col("delta").alias("net"),
        (F.col("delta") == DISAPPEARS).alias("gone"),
        "row",
        _no_names().alias("missing"),
        "from_key",
        F.lit(None).cast("bigint").alias("appeared"),
        _no_names().alias("lost"),
        F.col("seq").alias("last"),
        "unfit",
    )


def _fold_by_last(steps: DataFrame, toast: Sequence[str]) -> DataFrame:
    seq, born = F.col("seq"), F.when(F.col("delta") != ALTERED, F.col("seq"))
    aggregates = [
        F.sum("delta").cast("int").alias("net"),
        F.max_by(F.struct("delta", "row"), seq).alias("newest"),
        F.max(seq).alias("last"),
        F.max("unfit").alias("unfit"),
    ]
    if toast:
        aggregates += [F.max(born).alias("born"), F.max_by("from_key", born).alias("from_key")]
    for number, name in enumerate(toast):
        sent = F.when(was_sent(name), seq)
        aggregates += [
            F.max(sent).alias(f"sent_{number}"),
            F.max_by(F.col("row").getField(name), sent).alias(f"value_{number}"),
        ]
    folded = steps.groupBy("key").agg(*aggregates)
    row = F.col("newest.row")
    for number, name in enumerate(toast):
        row = row.withField(quoted_field(name), F.when(_is_known(number), F.col(f"value_{number}")))
    missing = F.filter(
        F.array(*(F.when(~_is_known(number), F.lit(name)) for number, name in enumerate(toast))),
        lambda name: name.isNotNull(),
    )
    gone = F.col("newest.delta") == DISAPPEARS
    key_type = steps.schema["from_key"].dataType
    return folded.select(
        "key",
        "net",
        gone.alias("gone"),
        F.when(~gone, row).alias("row"),
        (F.when(~gone, missing).otherwise(_no_names()) if toast else _no_names()).alias("missing"),
        (F.col("from_key") if toast else F.lit(None).cast(key_type)).alias("from_key"),
        (F.col("born") if toast else F.lit(None).cast("bigint")).alias("appeared"),
        _no_names().alias("lost"),
        "last",
        "unfit",
    )


def was_sent(name: str) -> Column:
    """Whether a step carries the value of a column."""
    unchanged = F.coalesce(F.array_contains("unchanged", name), F.lit(False))
    return (F.col("delta") != DISAPPEARS) & ~unchanged


def quoted_field(name: str) -> str:
    """`withField` takes a path; quoting keeps a dot in a column's name from being one."""
    return "`" + name.replace("`", "``") + "`"


def _is_known(number: int) -> Column:
    sent, born = F.col(f"sent_{number}"), F.col("born")
    return sent.isNotNull() & (born.isNull() | (sent >= born))


def _split_by_crossing(steps: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Keys that may hold two rows for a moment: one appears, and one disappears or is altered, in the same batch."""
    crossing = (
        steps.groupBy("key")
        .agg(F.max("delta").alias("most"), F.min("delta").alias("least"), F.count("*").alias("steps"))
        .filter((F.col("most") == APPEARS) & (F.col("steps") > 1))
        .select(F.col("key").alias("crossing"))
    )
    same = steps["key"].eqNullSafe(crossing["crossing"])
    return steps.join(crossing, same, "left_semi"), steps.join(crossing, same, "left_anti")


def _fold_in_order(steps: DataFrame) -> DataFrame:
    """Replay a key's steps one by one; the old row's text tells which of two rows a step meant.

    `before` is the row the key had before the batch; `held` are the rows that came in it and are still there.
    """
    in_order = F.sort_array(F.collect_list(F.struct("seq", "delta", "old_text", "new_text", "row"))).alias("steps")
    start = F.struct(F.lit(False).alias("before_gone"), F.array().cast(_held_type(steps)).alias("held"))
    replayed = (
        steps.groupBy("key")
        .agg(in_order, F.max("seq").alias("last"), F.max("unfit").alias("unfit"))
        .select("key", "last", "unfit", F.aggregate("steps", start, _replay).alias("end"))
    )
    count, before_gone = F.size("end.held"), F.col("end.before_gone")
    return replayed.select(
        "key",
        (count - before_gone.cast("int")).alias("net"),
        (count == 0).alias("gone"),
        F.when(count > 0, F.get("end.held", F.lit(0)).getField("row")).alias("row"),
        _no_names().alias("missing"),
        F.lit(None).cast(steps.schema["from_key"].dataType).alias("from_key"),
        F.lit(None).cast("bigint").alias("appeared"),
        _no_names().alias("lost"),
        "last",
        "unfit",
    )


def _replay(state: Column, step: Column) -> Column:
    held, removes = state.getField("held"), step.getField("delta") <= ALTERED
    meant = F.transform(held, lambda row: row.getField("text").eqNullSafe(step.getField("old_text")))
    place = F.array_position(meant, True)
    found = removes & (place > 0)
    left = F.when(found, F.filter(held, lambda _, index: index + 1 != place)).otherwise(held)
    arrived = F.struct(step.getField("new_text").alias("text"), step.getField("row").alias("row"))
    return F.struct(
        (state.getField("before_gone") | (removes & ~found)).alias("before_gone"),
        F.when(step.getField("delta") >= ALTERED, F.array_append(left, arrived)).otherwise(left).alias("held"),
    )


def _held_type(steps: DataFrame) -> T.ArrayType:
    fields = [T.StructField("text", steps.schema["new_text"].dataType)]
    fields.append(T.StructField("row", steps.schema["row"].dataType))
    return T.ArrayType(T.StructType(fields))


def _no_names() -> Column:
    return F.array().cast("array<string>")
