"""Random rows of every type: what the first copy brings is what the stream brings, value by value, letter by letter.

`ICESTREAM_SEED` repeats a run; a failure shows its seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F

from icestream.lake.session import Lake
from support.pipeline import Pipeline
from support.random_values import TYPES, declarations, random_rows

_ROWS = 120
_RULES = [
    {},
    {"types.unfit": "string", "types.uuid": "uuid", "types.numeric": "string"},
    {"types.json": "variant", "types.arrays": "string"},
]


@pytest.fixture(params=_RULES, ids=["defaults", "companions", "variant"])
def pipeline(
    request: pytest.FixtureRequest, lake: Lake, database: str, tmp_path: Path, namespace: str
) -> Iterator[Pipeline]:
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace, **request.param)
    yield pipeline
    pipeline.close()


def test_both_roads_bring_the_same_values(pipeline: Pipeline) -> None:
    seed = int(os.environ.get("ICESTREAM_SEED", random.SystemRandom().randrange(10**9)))
    rows = random_rows(random.Random(seed), _ROWS)
    pipeline.execute(*declarations())
    for table in ("copied", "streamed"):
        columns = ", ".join(f"c{number} {type_}" for number, type_ in enumerate(TYPES))
        pipeline.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns})")
    _insert(pipeline, "copied", rows)
    with pipeline.capturing():
        pipeline.bring_forward()
        _insert(pipeline, "streamed", rows)
        pipeline.wait_until_captured()
        pipeline.bring_forward()
    copied, streamed = _rows(pipeline, "copied"), _rows(pipeline, "streamed")
    assert len(copied) == len(streamed) == _ROWS, f"ICESTREAM_SEED={seed}"
    assert _difference(copied, streamed) == [], f"ICESTREAM_SEED={seed}"
    assert _letters(pipeline, "copied") == _letters(pipeline, "streamed"), f"ICESTREAM_SEED={seed}"
    pipeline.assert_equal()


def _insert(pipeline: Pipeline, table: str, rows: list[list[str | None]]) -> None:
    """As COPY does: every value is given as text, and the input function of its type reads it."""
    with pipeline.source.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for number, row in enumerate(rows):
            copy.write_row([number, *row])


def _rows(pipeline: Pipeline, table: str) -> list[Row]:
    """Each value as JSON: Python has no dates of the year 1, and takes -0.0 for 0.0."""
    rows = pipeline.lake.spark.table(f"{pipeline.settings.sink.namespace}.{table}")
    texts = (F.to_json(F.struct(rows[name].alias("value"))).alias(name) for name in rows.columns)
    return rows.orderBy("id").select(*texts).collect()


def _difference(copied: list[Row], streamed: list[Row]) -> list[tuple[str, str, str, str]]:
    """Which values differ: id, column, and both of them."""
    return [
        (left["id"], name, left[name], right[name])
        for left, right in zip(copied, streamed, strict=True)
        for name in left.asDict()
        if left[name] != right[name]
    ]


def _letters(pipeline: Pipeline, table: str) -> list[tuple[str, str | None, str | None]]:
    letters = pipeline.letters.newest(f"{pipeline.settings.sink.namespace}.{table}", limit=100_000)
    return sorted((str(letter.key), letter.column or "", letter.value or "") for letter in letters)
