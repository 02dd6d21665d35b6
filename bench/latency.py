"""How long a one-row change takes until it is visible in a big table, while everything runs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from bench_run import BenchRun
from capture import wait_for_streaming
from end_to_end import require_equal
from icestream.model.table import TableState
from pipeline import READY, Pipeline, wait_for_state, wait_until_visible
from progress import step, wait_until
from report import Figure
from source import ORDERS

GOAL_P50_S = 2.0
SINK = {"flush_interval": "200ms", "materializer_interval": "500ms"}
_WARM = 20
_MEASURED = 40
_LONGEST_PAUSE_S = 1.0  # chance decides, so that changes do not keep step with the cycles


def measure_latency(run: BenchRun) -> list[Figure]:
    print("a one-row change")
    with run.server.database("latency") as source:
        with step(f"filling the table with {run.scale:,} rows"):
            source.fill(run.scale)
            source.settle()
        pipeline = Pipeline("latency", source, run.folder, SINK)
        pipeline.configure([ORDERS])
        seconds = _measure(pipeline, run.scale)
        require_equal(pipeline)
    return _figures(sorted(seconds))


def _measure(pipeline: Pipeline, rows: int) -> list[float]:
    key, chance = pipeline.key(ORDERS), random.Random(42)
    with pipeline.capture() as capture, pipeline.standing() as standing:
        wait_for_streaming(capture)
        with pipeline.worker() as worker:
            wait_until(lambda: worker.said(READY), "the worker", timeout_s=300)
            with step(f"copying {rows:,} rows"):
                wait_for_state(worker, standing, key, TableState.LIVE)

            def once() -> float:
                position = pipeline.source.update_one(chance.randint(1, rows))
                began = time.monotonic()
                wait_until_visible([capture, worker], standing, key, position)
                return time.monotonic() - began

            with step(f"{_WARM} changes to warm up"):
                _repeat(once, _WARM, chance)
            with step(f"{_MEASURED} changes, one after the other"):
                return _repeat(once, _MEASURED, chance)


def _repeat(once: Callable[[], float], times: int, chance: random.Random) -> list[float]:
    seconds = []
    for _ in range(times):
        time.sleep(chance.uniform(0, _LONGEST_PAUSE_S))
        seconds.append(once())
    return seconds


def _figures(ordered: list[float]) -> list[Figure]:
    def share(part: float) -> float:
        return ordered[min(len(ordered) - 1, int(len(ordered) * part))]

    return [
        Figure("latency", "visible in Iceberg, p50", share(0.5), "s", at_most=GOAL_P50_S),
        Figure("latency", "visible in Iceberg, p95", share(0.95), "s"),
        Figure("latency", "visible in Iceberg, slowest", ordered[-1], "s"),
    ]
