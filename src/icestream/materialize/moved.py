"""Values that moved with their row: an update changed the key and did not send an unchanged TOAST value.

The value is the one of the row it came from, followed back through the batch (A to B to C) and, where the batch does
not know it either, in the table as it was before the batch. Where nobody knows it, it is lost: NULL, and a letter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from icestream.materialize.decode import key_is_whole
from icestream.materialize.fold import quoted_field, was_sent
from icestream.materialize.key_steps import ALTERED, DISAPPEARS
from icestream.materialize.shape import Shape

# Gives the table as it is before the batch, for these keys (a frame with `key`) at least: `key` and `row`.
TableBefore = Callable[[DataFrame], DataFrame]


def fill_moved(
    folded: DataFrame, steps: DataFrame, before: TableBefore, shape: Shape, toast: Sequence[str]
) -> DataFrame:
    """`folded` with the missing values of moved rows filled in; names of those that nobody knows go to `lost`."""
    links = _followed(_links(steps, shape, toast), toast)
    return _filled(folded, _with_table_values(links, before, shape, toast), toast)


def note_absent(folded: DataFrame, before: TableBefore) -> DataFrame:
    """Rows that were never copied have no value to keep: what an update did not send of them is lost."""
    wanted = folded.filter(F.size("missing") > 0).select("key")
    there = before(wanted).select(F.col("key").alias("there"))
    joined = folded.join(there, F.col("key").eqNullSafe(F.col("there")), how="left")
    lost = F.when(F.col("there").isNull(), F.concat("lost", "missing")).otherwise(F.col("lost"))
    return joined.select(*(lost.alias(name) if name == "lost" else F.col(name) for name in folded.columns))


def fill_kept(folded: DataFrame, before: TableBefore, toast: Sequence[str]) -> DataFrame:
    """`folded` with the values that rows keep and updates did not send, from the table as it was before the batch.

    Where the table has no such row, they are lost.
    """
    asks = F.size("missing") > 0
    stored = before(folded.filter(asks).select("key")).select(F.col("key").alias("at"), F.col("row").alias("stored"))
    joined = folded.join(stored, asks & F.col("key").eqNullSafe(F.col("at")), how="left")
    row = F.col("row")
    for name in toast:
        kept = F.col("stored").getField(name)
        value = F.when(F.array_contains("missing", name), kept).otherwise(F.col("row").getField(name))
        row = row.withField(quoted_field(name), value)
    lost = F.when(asks & F.col("at").isNull(), F.concat("lost", "missing")).otherwise(F.col("lost"))
    filled = {"row": F.when(F.col("row").isNotNull(), row), "missing": F.array().cast("array<string>"), "lost": lost}
    return joined.select(*(filled[name].alias(name) if name in filled else F.col(name) for name in folded.columns))


def lost_values(folded: DataFrame) -> DataFrame:
    """One row per value that nobody knows: offset, key as JSON, column."""
    place = F.floor(F.col("last") / 2).cast("bigint").alias("offset")
    return folded.select(place, F.to_json("key").alias("key"), F.explode("lost").alias("column"))


def _links(steps: DataFrame, shape: Shape, toast: Sequence[str]) -> DataFrame:
    """One row per move: where and when the row arrived, where it came from and when it had come there.

    `known_n` and `value_n` tell the n-th TOAST column as the row had it when it left; `from_born` is null if the row
    was there before the batch.
    """
    arrivals = steps.filter(F.col("from_key").isNotNull()).select(
        F.col("key").alias("to_key"), F.col("seq").alias("to_born"), "from_key", (F.col("seq") - 1).alias("left")
    )
    # A key that can't be decoded is nobody's: rows under it can't be told apart.
    told = steps.filter(key_is_whole(F.col("key"), shape)).select("seq", "delta", *_told_before(toast))
    leaving = told.filter(F.col("delta") == DISAPPEARS)
    joined = arrivals.join(leaving, F.col("left") == F.col("seq"), how="left")
    columns = [F.col("to_key"), F.col("to_born"), F.col("from_key"), F.col("born").alias("from_born")]
    for number in range(len(toast)):
        sent, born = F.col(f"sent_{number}"), F.col("born")
        known = F.coalesce(sent.isNotNull() & (born.isNull() | (sent >= born)), F.lit(False))
        columns += [known.alias(f"known_{number}"), F.col(f"value_{number}")]
    return joined.select(*columns)


def _told_before(toast: Sequence[str]) -> list[Column]:
    """What a key's earlier steps tell about the row it holds."""
    earlier = Window.partitionBy("key").orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    columns = [F.max(F.when(F.col("delta") != ALTERED, F.col("seq"))).over(earlier).alias("born")]
    for number, name in enumerate(toast):
        sent = F.when(was_sent(name), F.col("seq"))
        columns.append(F.max(sent).over(earlier).alias(f"sent_{number}"))
        columns.append(F.max_by(F.col("row").getField(name), sent).over(earlier).alias(f"value_{number}"))
    return columns


def _followed(links: DataFrame, toast: Sequence[str]) -> DataFrame:
    """Every link goes back to where its values are known, or to the table. Each round doubles the distance."""
    # A checkpoint, as the plan would double with every round, too.
    links = links.localCheckpoint()
    while not links.filter(_points_back(links, toast)).isEmpty():
        links = _one_round(links, toast).localCheckpoint()
    return links


def _points_back(links: DataFrame, toast: Sequence[str]) -> Column:
    return links["from_born"].isNotNull() & ~_all_known(links, toast)


def _all_known(links: DataFrame, toast: Sequence[str]) -> Column:
    return reduce(lambda left, right: left & right, (links[f"known_{number}"] for number in range(len(toast))))


def _one_round(links: DataFrame, toast: Sequence[str]) -> DataFrame:
    near, far = links.alias("near"), links.select(*(F.col(name).alias(f"far_{name}") for name in links.columns))
    points = _points_back(links, toast)
    same = near["from_key"].eqNullSafe(far["far_to_key"]) & (near["from_born"] == far["far_to_born"]) & points
    columns = [near["to_key"], near["to_born"]]
    for name in ("from_key", "from_born"):
        columns.append(F.when(points, far[f"far_{name}"]).otherwise(near[name]).alias(name))
    for number in range(len(toast)):
        known, value = near[f"known_{number}"], near[f"value_{number}"]
        columns.append((known | F.coalesce(far[f"far_known_{number}"], F.lit(False))).alias(f"known_{number}"))
        columns.append(F.when(known, value).otherwise(far[f"far_value_{number}"]).alias(f"value_{number}"))
    return near.join(far, same, how="left").select(*columns)


def _with_table_values(links: DataFrame, before: TableBefore, shape: Shape, toast: Sequence[str]) -> DataFrame:
    asks = ~_all_known(links, toast) & key_is_whole(F.col("from_key"), shape)
    asked = before(links.filter(asks).select(F.col("from_key").alias("key")))
    stored = asked.select(F.col("key").alias("at"), F.col("row").alias("stored"))
    joined = links.join(stored, asks & F.col("from_key").eqNullSafe(F.col("at")), how="left")
    columns = [F.col("to_key"), F.col("to_born")]
    for number, name in enumerate(toast):
        known = F.col(f"known_{number}")
        columns.append((known | F.col("at").isNotNull()).alias(f"known_{number}"))
        value = F.when(known, F.col(f"value_{number}")).otherwise(F.col("stored").getField(name))
        columns.append(value.alias(f"value_{number}"))
    return joined.select(*columns)


def _filled(folded: DataFrame, found: DataFrame, toast: Sequence[str]) -> DataFrame:
    same_row = F.col("key").eqNullSafe(F.col("to_key")) & (F.col("appeared") == F.col("to_born"))
    joined = folded.join(found, same_row & F.col("from_key").isNotNull(), how="left")
    moved = F.col("to_born").isNotNull()
    row, missing, lost = F.col("row"), F.col("missing"), F.col("lost")
    for number, name in enumerate(toast):
        asked = moved & F.array_contains("missing", name)
        value = F.when(asked, F.col(f"value_{number}")).otherwise(F.col("row").getField(name))
        row = row.withField(quoted_field(name), value)
        missing = F.when(asked, F.array_remove(missing, name)).otherwise(missing)
        lost = F.when(asked & ~F.col(f"known_{number}"), F.array_append(lost, name)).otherwise(lost)
    replaced = {"row": F.when(F.col("row").isNotNull(), row), "missing": missing, "lost": lost}
    columns = (replaced[name].alias(name) if name in replaced else F.col(name) for name in folded.columns)
    return joined.select(*columns)
