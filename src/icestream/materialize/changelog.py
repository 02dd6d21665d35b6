"""What a copy writes into a changelog, beside the rows it has read."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from icestream.lake.table import IcebergTable, quote
from icestream.model import change, changelog
from icestream.model.change import Op


def beginning(session: SparkSession, table: IcebergTable, position: int) -> DataFrame:
    """The row that says: everything before it is gone, and the rows of a copy at `position` follow."""
    row = session.range(1).select(
        F.lit(Op.TRUNCATE.value).alias(change.OP),
        F.lit(int(position)).cast("bigint").alias(change.LSN),
        F.lit(changelog.BEGINNING_OFFSET).cast("bigint").alias(changelog.OFFSET),
        F.lit(datetime.now(UTC)).alias(change.TS),
    )
    return with_nulls(row, session, table)


def with_nulls(rows: DataFrame, session: SparkSession, table: IcebergTable) -> DataFrame:
    """In all columns of the table: NULL in those that the rows do not tell."""
    fields = session.table(table.sql_name()).schema
    return rows.select(
        *(
            rows[quote(field.name)]
            if field.name in rows.columns
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in fields
        )
    )
