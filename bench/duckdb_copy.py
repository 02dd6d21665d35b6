"""Runs in DuckDB's own environment: conninfo, schema.table, file. Prints the seconds of one COPY."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import duckdb
import duckdb_extension_postgres_scanner


def main() -> None:
    conninfo, table, file = sys.argv[1:]
    schema, _, name = table.partition(".")
    extension = next(Path(duckdb_extension_postgres_scanner.__path__[0]).rglob("*.duckdb_extension"))
    duck = duckdb.connect(config={"threads": os.cpu_count() or 1})
    duck.execute(f"LOAD '{extension}'")  # refused unless DuckDB's makers have signed it
    scan = f"postgres_scan('{conninfo}', '{schema}', '{name}')"
    duck.execute(f"SELECT count(*) FROM (SELECT * FROM {scan} LIMIT 1)").fetchall()  # connects
    began = time.monotonic()
    duck.execute(f"COPY (SELECT * FROM {scan}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
    print(time.monotonic() - began)


if __name__ == "__main__":
    main()
