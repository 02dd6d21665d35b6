"""A large batch is decided before it is read whole: what becomes of each key needs only keys and operations.

The newest row of a key is then the change at one known offset; nothing wide is sorted, shuffled or kept. This works
where a key's newest change holds its whole row: no changed keys, no unchanged values, no full identity.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from icestream.materialize.key_steps import DISAPPEARS, delta
from icestream.model.change import Op

_MOST_BROADCAST = 1_000_000  # offsets; more of them do not fit in the memory of every executor


def decide(changes: DataFrame) -> DataFrame:
    """One row per key: `net`, `gone` and `unfit` as in a fold, and `last`, the offset of its newest change."""
    offset = F.col("offset")
    return (
        changes.select("key", "offset", delta().alias("delta"), "unfit")
        .groupBy("key")
        .agg(
            F.sum("delta").cast("int").alias("net"),
            F.max(offset).alias("last"),
            F.max_by("delta", offset).alias("last_delta"),
            F.max("unfit").alias("unfit"),
        )
        .select("key", "net", (F.col("last_delta") == DISAPPEARS).alias("gone"), "last", "unfit")
    )


def decide_inserts(changes: DataFrame) -> DataFrame:
    """The same where every change is an insert: its key can't come twice."""
    alone = [F.lit(1).alias("net"), F.lit(False).alias("gone"), F.col("offset").alias("last")]
    return changes.select("key", *alone, "unfit")


def at_offsets(staged: DataFrame, decided: DataFrame, count: int) -> DataFrame:
    """The staged changes that hold the newest rows of these keys, of which there are `count`."""
    last = decided.select("last")
    if count <= _MOST_BROADCAST:
        last = F.broadcast(last)
    return staged.join(last, F.col("offset") == F.col("last"), how="left_semi")


def as_folded(changes: DataFrame) -> DataFrame:
    """The newest changes in the form that a fold has for keys with a row in the table."""
    gone = F.col("op") == Op.DELETE
    return changes.select("key", gone.alias("gone"), "row", F.array().cast("array<string>").alias("missing"))
