"""One transaction with all the rows: capture must neither hold it in memory nor become slow."""

from __future__ import annotations

from bench_run import BenchRun
from capture import capture_figures, measure_capture, prepare_capture
from ceiling import ceiling_figures, measure_ceiling
from progress import step
from report import Figure

_SLOT = "ceiling"


def measure_big_transaction(run: BenchRun, scenario: str, rows: int) -> list[Figure]:
    print(f"one {scenario}")
    name = scenario.partition(" ")[0]
    with run.server.database(name) as source:
        with step("creating the slot of capture"):
            pipeline = prepare_capture(name, source, run.folder)
        source.create_slot(_SLOT)
        with step(f"inserting {rows:,} rows in one transaction"):
            backlog = source.insert_at_once(rows)
            source.settle()
        with step("pg_recvlogical"):
            ceiling = measure_ceiling(source, _SLOT, pipeline.name, backlog)
        with step("capture"):
            captured = measure_capture(pipeline, backlog)
    figures = ceiling_figures(scenario, ceiling)
    return figures + capture_figures(scenario, captured, ceiling, at_least=None)
