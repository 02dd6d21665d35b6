"""DuckDB as a reader, in an environment of its own, which is made once: the product does not need it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from icestream.lake.jars import cache_folder

_VERSION = "1.5.5"
_PACKAGES = ("duckdb", *(f"duckdb-extension-{name}" for name in ("avro", "httpfs", "iceberg")))
_SCRIPT = Path(__file__).parent / "duckdb_rows.py"


def duckdb_rows(metadata: str) -> list[list[str | None]]:
    """The names of the columns, then the rows of the table, as DuckDB writes them."""
    python = _python(_installed())
    done = subprocess.run([python, _SCRIPT, metadata], capture_output=True, text=True)
    assert done.returncode == 0, f"DuckDB: {done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def _installed() -> Path:
    environment = cache_folder() / f"duckdb-{_VERSION}"
    if environment.exists():
        return environment
    # An environment can't be moved to its place: what is there afterwards is a link to it.
    folder = environment.with_name(f"{environment.name}.{os.getpid()}")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    packages = (f"{name}=={_VERSION}" for name in _PACKAGES)
    subprocess.run([_python(folder), "-m", "pip", "install", "--quiet", *packages], check=True)
    environment.symlink_to(folder.name)
    return environment


def _python(environment: Path) -> Path:
    return environment / "bin" / "python"
