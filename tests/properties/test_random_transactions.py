"""Random transactions in a real PostgreSQL, cut into random batches: every table always equals its source.

A failure tells the seed that repeats it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.lake.session import Lake
from support.pipeline import Pipeline
from support.random_workload import SCHEMA, TABLES, Workload
from support.steps import seed


@pytest.fixture
def pipeline(lake: Lake, database: str, tmp_path: Path, namespace: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace, tables=TABLES)
    name = pipeline.source.info.dbname
    pipeline.execute(*SCHEMA, f"ALTER DATABASE {name} SET logical_decoding_work_mem = '64kB'")
    yield pipeline
    pipeline.close()


def run(pipeline: Pipeline, chosen: int, steps: int) -> None:
    workload = Workload(pipeline, chosen)
    try:
        workload.run(steps)
        pipeline.assert_equal()
    except BaseException as err:
        said = "\n".join(workload.said)
        raise AssertionError(f"ICESTREAM_SEED={chosen} repeats this:\n{said}") from err
    (streamed,) = pipeline.source.execute("SELECT sum(stream_txns) FROM pg_stat_replication_slots").fetchone() or (0,)
    assert streamed > 0, "no transaction was streamed: the test did not reach that path"


def test_random_transactions_arrive_exactly_once(pipeline: Pipeline) -> None:
    run(pipeline, seed(), steps=40)


@pytest.mark.long
@pytest.mark.parametrize("number", range(8))
def test_many_random_transactions_arrive_exactly_once(pipeline: Pipeline, number: int) -> None:
    run(pipeline, seed() + number, steps=150)
