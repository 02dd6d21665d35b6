"""The first copy of a table, beside DuckDB reading the same table into Parquet."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench_run import BenchRun
from capture import wait_for_streaming
from duckdb_yardstick import measure_duckdb
from end_to_end import require_equal
from icestream.model.table import TableState
from pipeline import READY, Pipeline, wait_for_state
from processes import Role
from progress import step, wait_until
from report import Figure
from source import ORDERS, SIDE
from yardstick import CopyJob

GOAL_OF_DUCKDB = 0.25
WARM_ROWS = 1000


@dataclass(frozen=True)
class Copied:
    seconds: float
    peak_mb: float  # of the worker


def measure_first_copy(run: BenchRun) -> tuple[list[Figure], list[str]]:
    """Figures, and what has to be said about them."""
    print("the first copy")
    with run.server.database("copy") as source:
        with step(f"filling the table with {run.scale:,} rows"):
            source.fill(run.scale)
            source.fill(WARM_ROWS, SIDE)
            source.settle()
        pipeline = Pipeline("copy", source, run.folder, {})
        with step("DuckDB"):
            duckdb = measure_duckdb(CopyJob(source, ORDERS, run.scale, run.folder))
        copied = copy_with_warm_worker(pipeline, ORDERS)
        require_equal(pipeline)
    rate = run.scale / copied.seconds
    figures = [Figure("first copy", "visible in Iceberg", rate, "rows/s")]
    if duckdb.seconds is None:
        return figures, [f"DuckDB could not be measured: {duckdb.trouble}"]
    yardstick = run.scale / duckdb.seconds
    figures.append(Figure("first copy", "DuckDB's postgres_scan to Parquet", yardstick, "rows/s"))
    figures.append(Figure("first copy", "of DuckDB", rate / yardstick, at_least=GOAL_OF_DUCKDB))
    return figures, []


def copy_with_warm_worker(pipeline: Pipeline, table: str) -> Copied:
    """The worker copies the small side table first; the other one comes with new settings, so the worker is warm."""
    pipeline.configure([SIDE])
    with pipeline.capture() as capture:
        wait_for_streaming(capture)
        with pipeline.worker() as worker:
            with step("copying a small table to warm the worker"), pipeline.standing() as standing:
                wait_until(lambda: worker.said(READY), "the worker", timeout_s=300)
                wait_for_state(worker, standing, pipeline.key(SIDE), TableState.LIVE)
            capture.stop()
            pipeline.configure([table, SIDE])
            with pipeline.capture() as second:
                return _time_copy(pipeline, table, second, worker)


def _time_copy(pipeline: Pipeline, table: str, capture: Role, worker: Role) -> Copied:
    """From the moment the copy is offered to workers until the table is live."""
    with step("first copy"), pipeline.standing() as standing:
        wait_for_state(capture, standing, pipeline.key(table), TableState.COPYING)
        began = time.monotonic()
        wait_for_state(worker, standing, pipeline.key(table), TableState.LIVE)
        return Copied(time.monotonic() - began, worker.peak_mb())
