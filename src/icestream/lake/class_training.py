"""Loads the classes that workers need, by doing a little of what they do; run by `class_archive` in its own process.

python -m icestream.lake.class_training CLASS_PATH ARCHIVE
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from icestream.lake import python_daemon

_ROWS = 5000
_CREATE = """
CREATE TABLE lake.n.t (id bigint, name string, amount decimal(12, 2), day date, at timestamp) USING iceberg
TBLPROPERTIES ('format-version' = '3', 'write.merge.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read')
"""
_MERGE = """
MERGE INTO lake.n.t.branch_b t USING known s ON t.id = s.key.id AND t.id BETWEEN 0 AND 5000
WHEN MATCHED AND s.gone THEN DELETE
WHEN MATCHED THEN UPDATE SET t.name = s.row.name, t.amount = s.row.amount
"""


def main(class_path: str, archive: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spark = _session(class_path, archive, folder)
        _work(spark, folder)
        jvm = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
        spark.stop()
        jvm.stdin.close()  # ends it, and it writes the archive then
        jvm.wait()


def _session(class_path: str, archive: str, folder: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.scheduler.mode": "FAIR",
        "spark.python.daemon.module": python_daemon.__name__,
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraClassPath": class_path,
        "spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={archive}"',
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "jdbc",
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "spark.sql.catalog.lake.jdbc.schema-version": "V1",
        "spark.sql.catalog.lake.warehouse": folder,
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _work(spark: SparkSession, folder: str) -> None:
    spark.sql("CREATE NAMESPACE lake.n")
    spark.sql(_CREATE)
    spark.sql("ALTER TABLE lake.n.t CREATE BRANCH b")
    texts = _staged(spark, f"{folder}/staged")
    rows = _typed(texts)
    rows.writeTo("lake.n.t.branch_b").append()
    folded = _folded(texts).persist()
    folded.agg(F.count("*"), F.count_if("gone")).collect()
    folded.createOrReplaceTempView("known")
    spark.sql(_MERGE)
    spark.sql("CALL lake.system.fast_forward('n.t', 'main', 'b')").collect()
    spark.createDataFrame([(1, "a")], "id bigint, name string").collect()
    spark.range(2).mapInArrow(_as_they_are, "id bigint").collect()
    spark.table("lake.n.t").join(F.broadcast(folded.select("last")), F.col("id") == F.col("last"), "left_semi").count()


def _staged(spark: SparkSession, path: str) -> DataFrame:
    number = F.col("id").cast("string")
    row = F.struct(number.alias("id"), number.alias("name"), number.alias("amount"))
    spark.range(_ROWS).select(F.lit("I").alias("_op"), row.alias("_data")).write.option("compression", "zstd").parquet(
        path
    )
    return spark.read.parquet(path).select(F.col("_metadata.row_index").alias("offset"), "*")


def _typed(staged: DataFrame) -> DataFrame:
    text = F.col("_data")
    return staged.select(
        text["id"].try_cast("bigint").alias("id"),
        text["name"].alias("name"),
        F.when(F.length(text["amount"]) < 9, text["amount"].try_cast("decimal(12,2)")).alias("amount"),
        F.lit("2026-01-31").try_cast("date").alias("day"),
        F.lit("2026-01-31 10:00:00.5").try_cast("timestamp").alias("at"),
    )


def _folded(staged: DataFrame) -> DataFrame:
    row = F.struct(*(F.col("_data")[name].alias(name) for name in ("name", "amount")))
    keyed = staged.select(
        F.struct(F.col("_data.id").cast("bigint").alias("id")).alias("key"), "offset", row.alias("row")
    )
    newest = keyed.groupBy("key").agg(F.max_by("row", "offset").alias("row"), F.max("offset").alias("last"))
    row = F.struct(F.col("row.name").alias("name"), F.col("row.amount").try_cast("decimal(12,2)").alias("amount"))
    return newest.select("key", row.alias("row"), "last", (F.col("last") % 3 == 0).alias("gone"))


def _as_they_are(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    main(sys.argv[1], str(Path(sys.argv[2]).absolute()))
