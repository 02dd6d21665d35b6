"""DuckDB as the yardstick of the first copy, in an environment of its own: the product does not need it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from source import SourceDatabase

_HERE = Path(__file__).parent
_ENVIRONMENT = _HERE / ".venv-duckdb"
_PYTHON = _ENVIRONMENT / "bin" / "python"
_READY = _ENVIRONMENT / ".ready"
_PACKAGES = ("duckdb==1.5.5", "duckdb-extension-postgres-scanner==1.5.5")


@dataclass(frozen=True)
class Yardstick:
    seconds: float | None
    trouble: str = ""


def measure_duckdb(source: SourceDatabase, table: str, folder: Path) -> Yardstick:
    """One COPY of the whole table to zstd Parquet, in a process that is connected already."""
    try:
        _install()
        output = subprocess.run(
            [_PYTHON, _HERE / "duckdb_copy.py", source.dsn, table, folder / "duckdb.parquet"],
            env=source.environment(),
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    except subprocess.CalledProcessError as err:
        return Yardstick(None, err.stderr.strip().splitlines()[-1] if err.stderr.strip() else f"exit {err.returncode}")
    return Yardstick(float(output))


def _install() -> None:
    if _READY.exists():
        return
    _run(sys.executable, "-m", "venv", str(_ENVIRONMENT))
    _run(str(_PYTHON), "-m", "pip", "install", "--quiet", *_PACKAGES)
    _READY.touch()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
