"""Staged files that hold rows as JSON (see `log.documents`), turned into the columns that all others have."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from icestream.log.documents import old_name
from icestream.model import change
from icestream.model.change import Op
from icestream.model.table import Relation

# A document is never half read; one value may be as long as PostgreSQL lets it be.
_OPTIONS = {"mode": "FAILFAST", "maxStringLen": str(2**31 - 1)}


def documents_schema() -> T.StructType:
    return T.StructType(
        [
            T.StructField(change.OP, T.StringType()),
            T.StructField(change.LSN, T.LongType()),
            T.StructField(change.TS, T.TimestampType()),
            T.StructField(change.XID, T.LongType()),
            T.StructField(change.UNCHANGED, T.StringType()),
            T.StructField(change.DATA, T.StringType()),
        ]
    )


def from_documents(staged: DataFrame, relation: Relation) -> DataFrame:
    """The rows with `_unchanged_cols`, `_data` and `_old` as a staged file of columns has them."""
    text = T.StructType([T.StructField(column.name, T.StringType()) for column in relation.columns])
    old = old_name(relation)
    document = F.from_json(change.DATA, T.StructType([*text.fields, T.StructField(old, text)]), _OPTIONS)
    parsed = staged.withColumn("document", document)
    op = F.col(change.OP)
    row = F.struct(*(F.col("document").getField(field.name).alias(field.name) for field in text))
    replaced = {
        change.UNCHANGED: _left_out(relation),
        change.DATA: F.when(~op.isin(Op.DELETE, Op.TRUNCATE), row),
        change.OLD: F.when(op == Op.DELETE, row).otherwise(F.col("document").getField(old)),
    }
    others = [F.col(name) for name in staged.columns if name not in replaced]
    return parsed.select(*others, *(column.alias(name) for name, column in replaced.items()))


def _left_out(relation: Relation) -> Column:
    """By what is not in the document: a name may well have a comma in it."""
    names = F.array(*(F.lit(column.name) for column in relation.columns))
    present = F.from_json(change.DATA, "map<string, string>", _OPTIONS)
    absent = F.filter(names, lambda name: ~F.map_contains_key(present, name))
    return F.when(F.col(change.UNCHANGED).isNotNull(), absent)
