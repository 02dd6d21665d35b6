"""The same waiting changes for three readers: pg_recvlogical, capture alone, and the whole way to Iceberg."""

from __future__ import annotations

from contextlib import ExitStack

from bench_run import BenchRun
from capture import GOAL_OF_CEILING, capture_figures, measure_capture, prepare_capture
from ceiling import Ceiling, ceiling_figures, measure_ceiling
from end_to_end import Prepared, delivery_figures, measure_delivery, prepared, require_equal
from pipeline import Pipeline
from progress import step
from report import Figure
from source import Backlog, SourceDatabase

_SLOTS = ("ceiling_before", "ceiling_after")
_BASE_SHARE = 0.3  # rows that are there before the changes, as a share of the number of changes


def measure_backlog(run: BenchRun, *, alone: bool, to_iceberg: bool) -> list[Figure]:
    print("a backlog of small transactions")
    with run.server.database("backlog") as source, ExitStack() as stack:
        base = int(run.scale * _BASE_SHARE)
        source.fill(base)
        with step("creating the slot of capture"):
            by_capture = prepare_capture("alone", source, run.folder)
        whole = None
        if to_iceberg:
            with step(f"copying {base:,} rows and warming the worker"):
                whole = stack.enter_context(prepared("whole", source, run.folder))
        backlog = _load(run, source, base)
        return _measure(source, backlog, by_capture if alone else None, whole, publication=by_capture.name)


def _load(run: BenchRun, source: SourceDatabase, base: int) -> Backlog:
    for slot in _SLOTS:
        source.create_slot(slot)
    with step(f"making {run.scale:,} changes, 1,000 per transaction"):
        backlog = source.change(run.scale, newest=base)
    with step("vacuum and checkpoint"):
        source.settle()
    return backlog


def _measure(
    source: SourceDatabase, backlog: Backlog, alone: Pipeline | None, whole: Prepared | None, *, publication: str
) -> list[Figure]:
    """The ceiling is measured before and after capture, and the better one counts."""
    before = _ceiling(source, _SLOTS[0], publication, backlog)
    captured = None
    if alone is not None:
        with step("capture"):
            captured = measure_capture(alone, backlog)
    ceiling = max(before, _ceiling(source, _SLOTS[1], publication, backlog), key=lambda found: found.rate)
    figures = ceiling_figures("backlog", ceiling)
    if captured is not None:
        figures += capture_figures("capture", captured, ceiling, at_least=GOAL_OF_CEILING)
    if whole is not None:
        with step("end to end"):
            delivered = measure_delivery(whole, backlog)
        whole.worker.stop()
        require_equal(whole.pipeline)
        figures += delivery_figures("end to end", delivered, ceiling)
    return figures


def _ceiling(source: SourceDatabase, slot: str, publication: str, backlog: Backlog) -> Ceiling:
    with step("pg_recvlogical"):
        return measure_ceiling(source, slot, publication, backlog)
