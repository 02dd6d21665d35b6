"""The first copy of a table, beside DuckDB reading the same table into Parquet."""

from __future__ import annotations

import time

from bench_run import BenchRun
from capture import wait_for_streaming
from end_to_end import require_equal
from icestream.model.table import TableState
from pipeline import READY, Pipeline, wait_for_state
from processes import Role
from progress import step, wait_until
from report import Figure
from source import ORDERS, SIDE
from yardstick import measure_duckdb

GOAL_OF_DUCKDB = 0.25
_WARM_ROWS = 1000


def measure_first_copy(run: BenchRun) -> tuple[list[Figure], list[str]]:
    """Figures, and what has to be said about them."""
    print("the first copy")
    with run.server.database("copy") as source:
        with step(f"filling the table with {run.scale:,} rows"):
            source.fill(run.scale)
            source.fill(_WARM_ROWS, SIDE)
            source.settle()
        pipeline = Pipeline("copy", source, run.folder, {})
        with step("DuckDB"):
            duckdb = measure_duckdb(source, f"bench.{ORDERS}", run.folder)
        pipeline.configure([SIDE])
        seconds = _measure(pipeline)
        require_equal(pipeline)
    rate = run.scale / seconds
    figures = [Figure("first copy", "visible in Iceberg", rate, "rows/s")]
    if duckdb.seconds is None:
        return figures, [f"DuckDB could not be measured: {duckdb.trouble}"]
    yardstick = run.scale / duckdb.seconds
    figures.append(Figure("first copy", "DuckDB's postgres_scan to Parquet", yardstick, "rows/s"))
    figures.append(Figure("first copy", "of DuckDB", rate / yardstick, at_least=GOAL_OF_DUCKDB))
    return figures, []


def _measure(pipeline: Pipeline) -> float:
    """The worker copies the small table first; the big one comes with new settings, so the worker is warm."""
    with pipeline.capture() as capture:
        wait_for_streaming(capture)
        with pipeline.worker() as worker:
            with step("copying a small table to warm the worker"), pipeline.standing() as standing:
                wait_until(lambda: worker.said(READY), "the worker", timeout_s=300)
                wait_for_state(worker, standing, pipeline.key(SIDE), TableState.LIVE)
            capture.stop()
            pipeline.configure([ORDERS, SIDE])
            with pipeline.capture() as second:
                return _time_copy(pipeline, second, worker)


def _time_copy(pipeline: Pipeline, capture: Role, worker: Role) -> float:
    """From the moment the copy is offered to workers until the table is live."""
    with step("first copy"), pipeline.standing() as standing:
        wait_for_state(capture, standing, pipeline.key(ORDERS), TableState.COPYING)
        began = time.monotonic()
        wait_for_state(worker, standing, pipeline.key(ORDERS), TableState.LIVE)
        return time.monotonic() - began
