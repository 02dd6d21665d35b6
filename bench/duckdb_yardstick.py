"""DuckDB: `postgres_scan` of a table to one Parquet file."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from yardstick import CopyJob, ToolEnvironment, Yardstick, attempt, run_tool

_ENVIRONMENT = ToolEnvironment("duckdb", "duckdb==1.5.5", "duckdb-extension-postgres-scanner==1.5.5")
_SCRIPT = Path(__file__).parent / "duckdb_copy.py"


def measure_duckdb(job: CopyJob) -> Yardstick:
    """One COPY of the whole table to zstd Parquet, in a process that is connected already."""
    return attempt(lambda: _copy(job))


def _copy(job: CopyJob) -> float:
    file = job.folder / "duckdb.parquet"
    command = [_ENVIRONMENT.program("python"), str(_SCRIPT), job.source.dsn, f"bench.{job.table}", str(file)]
    try:
        seconds = float(run_tool(command, job.source.environment()))
        job.require_rows(pq.read_metadata(file).num_rows)
    finally:
        file.unlink(missing_ok=True)
    return seconds
