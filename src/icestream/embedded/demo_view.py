"""What the demo shows: a live table on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from icestream.embedded.demo_watch import TableView

_PLAIN_EVERY_S = 5.0
_HEADINGS = ("table", "rows in Postgres", "rows in Iceberg", "changes applied", "lag", "last commit")


class DemoView(Protocol):
    def step(self, text: str, done: int, total: int) -> None:
        """Progress while starting."""

    def tables(self, caption: str, tables: Sequence[TableView]) -> None:
        """The present standing; may be called as often as one likes."""

    def say(self, text: str) -> None:
        """A line that stays."""


class LiveView:
    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._progress.add_task("starting", total=None)
        self._live = Live(self._progress, console=console, refresh_per_second=8)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def step(self, text: str, done: int, total: int) -> None:
        self._progress.update(self._task, description=text, completed=done, total=total)
        self._live.update(self._progress)

    def tables(self, caption: str, tables: Sequence[TableView]) -> None:
        self._live.update(Group(_table(tables), Text(caption, style="dim")))

    def say(self, text: str) -> None:
        self._live.console.print(Text(text))


class PlainView:
    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last_step = ""
        self._next_tables = 0.0

    def step(self, text: str, done: int, total: int) -> None:
        line = f"[{done}/{total}] {text}"
        if line != self._last_step:
            self._last_step = line
            self.say(line)

    def tables(self, caption: str, tables: Sequence[TableView]) -> None:
        if time.monotonic() < self._next_tables:
            return
        self._next_tables = time.monotonic() + _PLAIN_EVERY_S
        self.say(caption)
        for table in tables:
            self.say(
                f"  {table.name}: {table.source_rows} rows in Postgres, {table.iceberg_rows} in Iceberg, "
                f"{table.applied} changes applied, lag {table.lag_seconds:.1f} s, last commit {_time(table)}"
            )

    def say(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()


@contextmanager
def showing(*, as_json: bool) -> Iterator[DemoView]:
    """With `--json` stdout belongs to the answer, so everything else goes to stderr."""
    out = sys.stderr if as_json else sys.stdout
    if not out.isatty():
        yield PlainView(out)
        return
    with LiveView(Console(file=out)) as view:
        yield view


def _table(tables: Sequence[TableView]) -> Table:
    grid = Table(title="Postgres → Iceberg", title_justify="left")
    for heading in _HEADINGS:
        grid.add_column(heading, justify="left" if heading == "table" else "right")
    for table in tables:
        lag = Text(f"{table.lag_seconds:.1f} s", style="green" if table.lag_seconds < 5 else "yellow")
        grid.add_row(
            table.name,
            f"{table.source_rows:,}",
            f"{table.iceberg_rows:,}",
            f"{table.applied:,}",
            lag,
            _time(table),
        )
    return grid


def _time(table: TableView) -> str:
    return "-" if table.last_commit is None else table.last_commit.astimezone().strftime("%H:%M:%S")
