"""Capture alone: how fast and in how much memory a waiting backlog gets into the log."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from ceiling import Ceiling
from pipeline import STREAMING, Pipeline, wait_until_flushed
from processes import Role
from progress import wait_until
from report import Figure
from source import ORDERS, Backlog, SourceDatabase

GOAL_OF_CEILING = 0.7
GOAL_PEAK_MB = 512


@dataclass(frozen=True)
class Captured:
    start_s: float  # from the start of the process until it streams
    drain_s: float  # from then until everything is durable in the log
    cpu_s: float
    peak_mb: float
    changes: int

    @property
    def rate(self) -> float:
        return self.changes / self.drain_s


def prepare_capture(name: str, source: SourceDatabase, folder: Path) -> Pipeline:
    """Slot and publication exist afterwards. Nothing is copied: no worker takes part."""
    pipeline = Pipeline(name, source, folder, {})
    pipeline.configure(skip_copy=True)
    with pipeline.capture() as capture:
        wait_for_streaming(capture)
    return pipeline


def wait_for_streaming(capture: Role) -> float:
    return wait_until(lambda: capture.said(STREAMING), "capture to stream", timeout_s=120)


def measure_capture(pipeline: Pipeline, backlog: Backlog) -> Captured:
    """Raises RuntimeError if the log does not hold exactly the backlog."""
    key = pipeline.key(ORDERS)
    with pipeline.standing() as standing, pipeline.capture() as capture:
        wait_until_flushed(capture, standing, backlog.inside)
        ended = time.monotonic()
        streaming = wait_for_streaming(capture)
        cpu_s, peak_mb = capture.cpu_s(), capture.peak_mb()
        staged = standing.staged_changes(key)
    if staged != backlog.changes:
        raise RuntimeError(f"the log of {key} holds {staged} changes instead of {backlog.changes}")
    return Captured(streaming - capture.started, ended - streaming, cpu_s, peak_mb, backlog.changes)


def capture_figures(scenario: str, found: Captured, ceiling: Ceiling, *, at_least: float | None) -> list[Figure]:
    return [
        Figure(scenario, "capture", found.rate, "changes/s"),
        Figure(scenario, "of the ceiling", found.rate / ceiling.rate, at_least=at_least),
        Figure(scenario, "start of the process, not in it", found.start_s, "s"),
        Figure(scenario, "of the ceiling, start in it", found.changes / (found.start_s + found.drain_s) / ceiling.rate),
        Figure(scenario, "processor time of capture", found.cpu_s, "s"),
        Figure(scenario, "peak memory of capture", found.peak_mb, "MB", at_most=GOAL_PEAK_MB),
    ]
