"""Run by DuckDB's own Python: the rows of an Iceberg table, each a line of JSON texts, from its metadata file."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import duckdb

_EXTENSIONS = ("avro", "httpfs", "iceberg")  # in the order they need each other


def main(metadata: str) -> None:
    duck = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in _EXTENSIONS:
        folder = importlib.import_module(f"duckdb_extension_{name}").__path__[0]
        duck.execute(f"LOAD '{next(Path(folder).rglob('*.duckdb_extension'))}'")
    columns = duck.execute("DESCRIBE SELECT * FROM iceberg_scan(?)", [metadata]).fetchall()
    rows = duck.execute(
        f"SELECT {', '.join(_text(*column[:2]) for column in columns)} FROM iceberg_scan(?)", [metadata]
    )
    sys.stdout.write(json.dumps([column[0] for column in columns]) + "\n")
    for row in rows.fetchall():
        sys.stdout.write(json.dumps(row) + "\n")


def _text(name: str, kind: str) -> str:
    """Documents as JSON, where nothing and the JSON value null are the same."""
    column = '"' + name.replace('"', '""') + '"'
    return f"nullif({column}::JSON::VARCHAR, 'null')" if kind == "VARIANT" else f"{column}::VARCHAR"


if __name__ == "__main__":
    main(sys.argv[1])
