"""The demo: a shop in PostgreSQL that keeps changing, its mirror in Iceberg, and a comparison of every row."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg

from icestream.config import Settings, load
from icestream.config.environment import all_variables
from icestream.embedded.demo_folder import DATABASE, DemoFolder
from icestream.embedded.demo_result import DemoResult, compare_tables, verdict_lines
from icestream.embedded.demo_view import DemoView, showing
from icestream.embedded.demo_watch import DemoWatch, percentile
from icestream.embedded.postgres import EmbeddedPostgres
from icestream.embedded.shop import TABLES
from icestream.embedded.workload import Workload
from icestream.errors import LakeError
from icestream.observe.logs import LogLevel
from icestream.runtime import exits
from icestream.runtime.child import SUPERVISED, Child, icestream_command
from icestream.runtime.opening import opened_state
from icestream.runtime.signals import StopSignals, exit_at_once

LOOK_EVERY_S = 0.5
START_TIMEOUT_S = 600.0  # the first start on a machine fetches the Iceberg jar
DRAIN_TIMEOUT_S = 300.0
_STEPS = 4 + len(TABLES)


@dataclass(frozen=True)
class DemoOptions:
    folder: Path
    seconds: float
    as_json: bool
    seed: int
    log_level: LogLevel


class EndedEarly(Exception):
    """Ctrl-C came before there was anything to compare."""


def run_demo(options: DemoOptions) -> int:
    """Returns the exit code: 0 only if every table is equal."""
    folder = DemoFolder(options.folder)
    demo = Demo(options, folder)
    with folder.claimed(), StopSignals(demo.ending, at_once=demo.end_at_once):
        try:
            result = demo.run()
        except EndedEarly:
            sys.stderr.write("ended before there was anything to compare\n")
            return 130
    _print(result, options, folder, demo.since)
    return exits.OK if result.match else exits.FAILED


class Demo:
    """One run, from the first start to the comparison. `ending` is set by Ctrl-C, or when the time is over."""

    def __init__(self, options: DemoOptions, folder: DemoFolder) -> None:
        self.ending = threading.Event()
        self.since = ""
        self._options = options
        self._folder = folder
        self._postgres = EmbeddedPostgres(folder.postgres)
        self._pipeline: Child | None = None

    def run(self) -> DemoResult:
        with ExitStack() as stack:
            with showing(as_json=self._options.as_json) as view:
                workload = self._open_shop(stack, view)
                settings = self._write_settings()
                watch = stack.enter_context(self._watching(settings))
                applied = self._mirror(view, watch, workload)
            _note("Comparing every row of every table …", as_json=self._options.as_json)
            return self._result(settings, watch, applied)

    def end_at_once(self, signum: int) -> None:
        """A second Ctrl-C: nothing is kept, so nothing has to be put in order."""
        if self._pipeline is not None:
            self._pipeline.kill()
        self._postgres.stop(crash=True)
        exit_at_once(signum)

    def _open_shop(self, stack: ExitStack, view: DemoView) -> Workload:
        """The server stays up for the comparison, so it belongs to the caller's stack."""
        view.step("starting PostgreSQL", 0, _STEPS)
        stack.enter_context(self._postgres)
        view.step("opening the shop", 1, _STEPS)
        self._postgres.create_database(DATABASE)
        workload = stack.enter_context(Workload(self._postgres.conninfo(DATABASE), self._options.seed))
        workload.shop.open()
        return workload

    def _write_settings(self) -> Settings:
        self._folder.write_settings(self._postgres)
        return load(self._folder.settings, {}).settings

    def _mirror(self, view: DemoView, watch: DemoWatch, workload: Workload) -> int:
        """Runs the pipeline while the shop changes, and until all changes are applied; gives their number."""
        view.step("starting the pipeline (Spark needs some seconds)", 2, _STEPS)
        with self._running_pipeline():
            self._wait_for_copies(view, watch)
            self._keep_changing(view, watch, workload)
            self._apply_the_rest(view, watch)
            return watch.applied()

    @contextmanager
    def _watching(self, settings: Settings) -> Iterator[DemoWatch]:
        with psycopg.connect(self._postgres.conninfo(DATABASE), autocommit=True) as conn, opened_state(settings) as db:
            yield DemoWatch(conn, db, settings)

    @contextmanager
    def _running_pipeline(self) -> Iterator[None]:
        command = icestream_command(
            "run", SUPERVISED, "--config", str(self._folder.settings), "--log-level", self._log_level()
        )
        environ = {name: value for name, value in os.environ.items() if name not in all_variables()}
        with self._folder.log.open("wb") as output:
            self._pipeline = Child(command, environ, output=output)
            try:
                yield
            finally:
                self._pipeline.drain()

    def _log_level(self) -> str:
        return min(self._options.log_level, LogLevel.INFO, key=list(LogLevel).index).value

    def _wait_for_copies(self, view: DemoView, watch: DemoWatch) -> None:
        def copied() -> bool:
            done = watch.copied()
            view.step(f"first copy: {done} of {len(TABLES)} tables", 3 + done, _STEPS)
            return done == len(TABLES)

        self._wait(copied, watch, START_TIMEOUT_S, "the first copy")
        if self.ending.is_set():
            raise EndedEarly
        # Rounded up: time travel to before the first snapshot is an error.
        self.since = (datetime.now(UTC) + timedelta(seconds=1)).strftime("%Y-%m-%d %H:%M:%S")

    def _keep_changing(self, view: DemoView, watch: DemoWatch, workload: Workload) -> None:
        end = time.monotonic() + self._options.seconds
        workload.start()
        while (left := end - time.monotonic()) > 0 and not self.ending.wait(min(LOOK_EVERY_S, left)):
            workload.check()
            self._require_running(watch)
            view.tables(f"{workload.shop.changes:,} changes made, {left:.0f} s left; Ctrl-C ends early", watch.tables())
        workload.stop()

    def _apply_the_rest(self, view: DemoView, watch: DemoWatch) -> None:
        target = watch.wal_end()

        def applied() -> bool:
            view.tables("no more changes; applying the rest", watch.tables())
            return watch.has_applied(target)

        self.ending.clear()  # from here on Ctrl-C means: leave
        self._wait(applied, watch, DRAIN_TIMEOUT_S, "the last changes")
        if self.ending.is_set():
            raise EndedEarly
        view.tables("all changes are applied", watch.tables())

    def _wait(self, condition: Callable[[], bool], watch: DemoWatch, timeout_s: float, what: str) -> None:
        """Until the condition holds or Ctrl-C comes."""
        deadline = time.monotonic() + timeout_s
        while not condition() and not self.ending.wait(LOOK_EVERY_S):
            self._require_running(watch)
            if time.monotonic() > deadline:
                raise LakeError(f"{what} did not come within {timeout_s:.0f} s", hint=f"look into {self._folder.log}")

    def _require_running(self, watch: DemoWatch) -> None:
        code = self._pipeline.poll() if self._pipeline is not None else None
        if code is not None:
            raise LakeError(f"the pipeline ended with exit code {code}", hint=f"look into {self._folder.log}")
        parked = watch.parked()
        if parked is not None:
            raise LakeError(f"{parked.name} is parked: {parked.reason}", hint=f"look into {self._folder.log}")

    def _result(self, settings: Settings, watch: DemoWatch, applied: int) -> DemoResult:
        return DemoResult(
            tables=compare_tables(settings),
            changes=applied,
            lag_p50_ms=percentile(watch.lags_ms, 0.50),
            lag_p99_ms=percentile(watch.lags_ms, 0.99),
            warehouse=self._folder.warehouse,
        )


def _print(result: DemoResult, options: DemoOptions, folder: DemoFolder, since: str) -> None:
    for line in verdict_lines(result, folder.settings, folder.log, since):
        _note(line, as_json=options.as_json)
    if options.as_json:
        sys.stdout.write(json.dumps(result.as_dict()) + "\n")


def _note(line: str, *, as_json: bool) -> None:
    (sys.stderr if as_json else sys.stdout).write(line + "\n")
