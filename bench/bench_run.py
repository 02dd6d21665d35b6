"""What every measurement gets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from source import Server


@dataclass(frozen=True)
class BenchRun:
    server: Server
    folder: Path  # for pipelines; removed at the end
    scale: int  # rows or changes
