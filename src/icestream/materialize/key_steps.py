"""Changes to steps of keys: each step adds a row to a key, takes one away, or alters the one that is there."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from icestream.materialize.shape import Shape
from icestream.model.change import Op
from icestream.model.table import Profile

APPEARS, ALTERED, DISAPPEARS = 1, 0, -1


def key_steps(changes: DataFrame, shape: Shape, profile: Profile) -> DataFrame:
    """seq, key, delta, row, unchanged, unfit, from_key (and the texts of both rows under a full identity).

    An update that changes the key is two steps: the old key's row disappears, then the new key's row appears and
    `from_key` says where it came from.
    """
    if profile.rekeyed == 0:
        return changes.select(
            (F.col("offset") * 2).alias("seq"),
            "key",
            delta().alias("delta"),
            "row",
            "unchanged",
            "unfit",
            F.lit(None).cast(changes.schema["key"].dataType).alias("from_key"),
            *_texts(shape, F.col("old_text") if shape.full_identity else None),
        )
    moved = (F.col("op") == Op.UPDATE) & F.col("old_key").isNotNull() & ~F.col("old_key").eqNullSafe(F.col("key"))
    both = F.array(_step(shape, part=0), _step(shape, part=1))
    only = F.array(_step(shape, part=None))
    return changes.select(F.explode(F.when(moved, both).otherwise(only)).alias("step")).select("step.*")


def _step(shape: Shape, *, part: int | None) -> Column:
    """The whole change, or one half of an update that changes the key."""
    leaves, arrives = part == 0, part == 1
    nothing_from = F.when(F.lit(False), F.col("old_key"))
    fields = [
        (F.col("offset") * 2 + (part or 0)).alias("seq"),
        F.col("old_key" if leaves else "key").alias("key"),
        (F.lit(DISAPPEARS) if leaves else F.lit(APPEARS) if arrives else delta()).alias("delta"),
        (F.when(F.lit(False), F.col("row")) if leaves else F.col("row")).alias("row"),
        (F.when(F.lit(False), F.col("unchanged")) if leaves else F.col("unchanged")).alias("unchanged"),
        (F.lit(False) if leaves else F.col("unfit")).alias("unfit"),
        (F.col("old_key") if arrives else nothing_from).alias("from_key"),
    ]
    if shape.full_identity:
        old = F.when(F.lit(False), F.col("old_text")) if arrives else F.col("old_text")
        new = F.when(F.lit(False), F.col("new_text")) if leaves else F.col("new_text")
        fields += [old.alias("old_text"), new.alias("new_text")]
    return F.struct(*fields)


def delta() -> Column:
    """What a change that keeps its key means for that key."""
    op = F.col("op")
    return F.when(op == Op.INSERT, APPEARS).when(op == Op.DELETE, DISAPPEARS).otherwise(ALTERED)


def _texts(shape: Shape, old: Column | None) -> list[Column]:
    return [] if old is None else [old.alias("old_text"), F.col("new_text")]
