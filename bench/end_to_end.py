"""End to end: from the start of the drain until the whole backlog is visible in Iceberg."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from capture import wait_for_streaming
from ceiling import Ceiling
from icestream.model.table import TableState
from pipeline import READY, Pipeline, wait_for_state, wait_until_visible, warm_up
from processes import Role
from progress import step, wait_until
from report import Figure
from source import ORDERS, SIDE, SUMMED, Backlog, SourceDatabase

GOAL_OF_CEILING = 0.35
SINK = {"materializer_interval": "1s"}  # otherwise the last few changes wait for up to ten seconds
# Spark takes another way through small batches: what is warm has to be what is measured.
_WARM_CYCLES = 4
_WARM_ROWS = 100_000


@dataclass(frozen=True)
class Delivered:
    start_s: float  # from the start of the capture process until it streams
    drain_s: float  # from then until everything is visible
    peak_mb: float  # of the worker
    changes: int

    @property
    def rate(self) -> float:
        return self.changes / self.drain_s


@dataclass(frozen=True)
class Prepared:
    """A pipeline whose tables are copied, whose worker is warm, and whose capture is stopped."""

    pipeline: Pipeline
    worker: Role


@contextmanager
def prepared(name: str, source: SourceDatabase, folder: Path) -> Iterator[Prepared]:
    """The worker runs as long as the block."""
    pipeline = Pipeline(name, source, folder, SINK)
    pipeline.configure()
    with pipeline.capture() as capture, pipeline.standing() as standing:
        wait_for_streaming(capture)
        with pipeline.worker() as worker:
            wait_until(lambda: worker.said(READY), "the worker", timeout_s=300)
            for table in (ORDERS, SIDE):
                wait_for_state(worker, standing, pipeline.key(table), TableState.LIVE)
            warm_up(pipeline, standing, [capture, worker], cycles=_WARM_CYCLES, rows=_WARM_ROWS)
            capture.stop()
            yield Prepared(pipeline, worker)


def measure_delivery(prepared: Prepared, backlog: Backlog) -> Delivered:
    """Raises RuntimeError if the table differs from the source afterwards."""
    pipeline, worker = prepared.pipeline, prepared.worker
    with pipeline.standing() as standing, pipeline.capture() as capture:
        wait_until_visible([capture, worker], standing, pipeline.key(ORDERS), backlog.inside)
        ended = time.monotonic()
        streaming = wait_for_streaming(capture)
        peak_mb = worker.peak_mb()
    return Delivered(streaming - capture.started, ended - streaming, peak_mb, backlog.changes)


def require_equal(pipeline: Pipeline, tables: Sequence[str] = (ORDERS,), summed: Sequence[str] = SUMMED) -> None:
    """Raises RuntimeError if an Iceberg table differs from its source."""
    with step("comparing with the source"):
        expected, found = pipeline.source.checksums(tables, summed), pipeline.checksums(tables, summed)
        differing = [
            f"{ours} instead of {theirs}" for ours, theirs in zip(found, expected, strict=True) if ours != theirs
        ]
        if differing:
            raise RuntimeError(f"the Iceberg tables of {pipeline.name} differ: {'; '.join(differing)}")


def delivery_figures(scenario: str, found: Delivered, ceiling: Ceiling) -> list[Figure]:
    return [
        Figure(scenario, "visible in Iceberg", found.rate, "changes/s"),
        Figure(scenario, "of the ceiling", found.rate / ceiling.rate, at_least=GOAL_OF_CEILING),
        Figure(scenario, "start of capture, not in it", found.start_s, "s"),
        Figure(scenario, "of the ceiling, start in it", found.changes / (found.start_s + found.drain_s) / ceiling.rate),
        Figure(scenario, "peak memory of the worker, JVM included", found.peak_mb, "MB"),
    ]
