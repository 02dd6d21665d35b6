"""The first copy of a narrow and of a wide table, in several sizes, beside what ingestr and DuckDB make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench_run import BenchRun
from duckdb_yardstick import measure_duckdb
from end_to_end import require_equal
from first_copy import WARM_ROWS, Copied, copy_with_warm_worker
from ingestr_yardstick import Way, measure_ingestr
from pipeline import Pipeline
from progress import step
from report import Figure
from source import SIDE, SourceDatabase
from yardstick import CopyJob, Yardstick

_TABLES = Path(__file__).parent / "copies.sql"


@dataclass(frozen=True)
class Shape:
    """A table of copies.sql, and what is wanted of its copy."""

    table: str
    summed: tuple[str, ...]  # columns that tell whether the copy is right
    of_duckdb: float | None = None
    of_ingestr: float | None = None


SHAPES = (
    Shape("narrow", ("id", "customer_id"), of_duckdb=0.3),
    Shape("wide", ("id", "customer_id", "price", "total"), of_ingestr=1.0),
)


def measure_copies(run: BenchRun, sizes: Sequence[int]) -> tuple[list[Figure], list[str]]:
    """Figures, and what has to be said about them."""
    figures: list[Figure] = []
    notes: list[str] = []
    for rows in sizes:
        for shape in SHAPES:
            found, said = _measure(run, shape, rows)
            figures += found
            notes += said
    return figures, notes


def _measure(run: BenchRun, shape: Shape, rows: int) -> tuple[list[Figure], list[str]]:
    scenario = f"{rows:,} {shape.table} rows"
    print(f"the first copy of {scenario}")
    name = f"{shape.table}_{rows}"
    with run.server.database(name) as source:
        _fill(source, shape, rows)
        job = CopyJob(source, shape.table, rows, run.folder)
        with step("DuckDB"):
            duckdb = measure_duckdb(job)
        with step("ingestr"):
            ingestr = measure_ingestr(job, small=CopyJob(source, SIDE, WARM_ROWS, run.folder))
        pipeline = Pipeline(name, source, run.folder, {})
        copied = copy_with_warm_worker(pipeline, shape.table)
        require_equal(pipeline, [shape.table], shape.summed)
    return _figures(scenario, shape, rows, copied, duckdb, ingestr), _notes(scenario, duckdb, ingestr.found)


def _fill(source: SourceDatabase, shape: Shape, rows: int) -> None:
    source.define(_TABLES)
    with step("filling the table"):
        source.fill(rows, shape.table, made_by=f"{shape.table}_rows")
        source.fill(WARM_ROWS, SIDE)
        source.settle()


def _figures(scenario: str, shape: Shape, rows: int, copied: Copied, duckdb: Yardstick, ingestr: Way) -> list[Figure]:
    rate = rows / copied.seconds
    figures = [Figure(scenario, "visible in Iceberg", rate, "rows/s")]
    if ingestr.found.seconds is not None:
        theirs = rows / ingestr.found.seconds
        figures.append(Figure(scenario, f"ingestr to Iceberg ({ingestr.name})", theirs, "rows/s"))
        figures.append(Figure(scenario, "of ingestr", rate / theirs, at_least=shape.of_ingestr))
    if duckdb.seconds is not None:
        theirs = rows / duckdb.seconds
        figures.append(Figure(scenario, "DuckDB's postgres_scan to Parquet", theirs, "rows/s"))
        figures.append(Figure(scenario, "of DuckDB", rate / theirs, at_least=shape.of_duckdb))
    figures.append(Figure(scenario, "peak memory of the worker, JVM included", copied.peak_mb, "MB"))
    return figures


def _notes(scenario: str, duckdb: Yardstick, ingestr: Yardstick) -> list[str]:
    tools = {"DuckDB": duckdb, "ingestr": ingestr}
    return [
        f"{scenario}: {tool} could not be measured: {found.trouble}"
        for tool, found in tools.items()
        if found.seconds is None
    ]
