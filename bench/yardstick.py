"""Other tools as yardsticks of the first copy, each in an environment of its own: the product does not need them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from source import SourceDatabase

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class CopyJob:
    """One table of a source, and where what becomes of it may lie until it is counted."""

    source: SourceDatabase
    table: str
    rows: int
    folder: Path

    def require_rows(self, found: int) -> None:
        if found != self.rows:
            raise WrongCount(f"it has written {found:,} rows instead of {self.rows:,}")


@dataclass(frozen=True)
class Yardstick:
    """How long a tool took, or why that isn't known."""

    seconds: float | None
    trouble: str = ""


class WrongCount(Exception):
    """A tool has said that it is done, and rows are missing or too many."""


class ToolEnvironment:
    """Made when it is first needed, and kept."""

    def __init__(self, name: str, *packages: str) -> None:
        self._folder = _HERE / f".venv-{name}"
        self._packages = packages

    def program(self, name: str) -> str:
        """Raises CalledProcessError if the environment can't be made."""
        ready = self._folder / ".ready"
        if not ready.exists():
            run_tool([sys.executable, "-m", "venv", str(self._folder)])
            run_tool([str(self._folder / "bin" / "pip"), "install", "--quiet", *self._packages])
            ready.touch()
        return str(self._folder / "bin" / name)


def attempt(measure: Callable[[], float]) -> Yardstick:
    """A tool that can't be installed, fails, or writes something else does not end the run: the report says so."""
    try:
        return Yardstick(measure())
    except subprocess.CalledProcessError as err:
        said = (err.stderr.strip() or err.stdout.strip()).splitlines()
        return Yardstick(None, said[-1] if said else f"exit {err.returncode}")
    except (OSError, WrongCount) as err:
        return Yardstick(None, str(err))


def run_tool(command: list[str], environment: dict[str, str] | None = None) -> str:
    """What it has printed. Raises CalledProcessError."""
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
