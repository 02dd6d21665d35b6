"""One transaction with all the rows: capture must neither hold it in memory nor become slow."""

from __future__ import annotations

from bench_run import BenchRun
from capture import capture_figures, measure_capture, prepare_capture
from ceiling import ceiling_figures, measure_ceiling
from progress import step
from report import Figure

_SLOT = "ceiling"


def measure_big_transaction(run: BenchRun) -> list[Figure]:
    print("one big transaction")
    with run.server.database("big") as source:
        with step("creating the slot of capture"):
            pipeline = prepare_capture("big", source, run.folder)
        source.create_slot(_SLOT)
        with step(f"inserting {run.scale:,} rows in one transaction"):
            backlog = source.insert_at_once(run.scale)
            source.settle()
        with step("pg_recvlogical"):
            ceiling = measure_ceiling(source, _SLOT, pipeline.name, backlog)
        with step("capture"):
            captured = measure_capture(pipeline, backlog)
    figures = ceiling_figures("big transaction", ceiling)
    return figures + capture_figures("big transaction", captured, ceiling, at_least=None)
