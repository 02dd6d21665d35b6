"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

_PACKAGES = ("icestream", "pyspark", "pyarrow", "psycopg", "numpy", "adbc-driver-postgresql")


@dataclass(frozen=True)
class Box:
    date: str
    cpu: str
    cores: int
    memory_gb: float
    load: float  # of the minute before the run; far from 0: somebody else was at work
    versions: dict[str, str]

    def lines(self) -> list[str]:
        return [
            f"{self.date}, load before the run {self.load:.2f}",
            f"{self.cores} cores ({self.cpu}), {self.memory_gb:.0f} GB of memory",
            ", ".join(f"{name} {number}" for name, number in self.versions.items()),
        ]


def look_at_box(postgres: str, load: float) -> Box:
    return Box(
        date=datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
        cpu=_field("/proc/cpuinfo", "model name") or platform.machine(),
        cores=os.cpu_count() or 1,
        memory_gb=int(_field("/proc/meminfo", "MemTotal").split()[0]) / 1024**2,
        load=load,
        versions={
            "Python": platform.python_version(),
            "Java": _java(),
            "PostgreSQL": postgres,
            **{name: version(name) for name in _PACKAGES},
        },
    )


def _field(file: str, name: str) -> str:
    for line in Path(file).read_text().splitlines():
        if line.startswith(name):
            return line.partition(":")[2].strip()
    return ""


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else "java"
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    return said.split('"')[1] if '"' in said else "unknown"
