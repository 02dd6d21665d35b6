"""Icestream as real processes: a test starts, watches, pauses and kills them; none outlives its test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.pipeline import Pipeline
from support.waiting import wait_for

_LAST_LINES = 40


class Process:
    """One icestream command in a process group of its own (a worker's JVM belongs to it)."""

    def __init__(self, arguments: tuple[str, ...], environ: Mapping[str, str], log: Path) -> None:
        self.name = " ".join(arguments[:1])
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "icestream", *arguments],
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code once it has ended, negative for a signal."""
        return self._process.poll()

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def is_paused(self) -> bool:
        """Whether SIGSTOP holds it."""
        stat = Path(f"/proc/{self.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    def send(self, signum: signal.Signals) -> None:
        self._process.send_signal(signum)

    def kill(self) -> None:
        """SIGKILL, to this process alone: its JVM has to notice by itself."""
        self.send(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Asks it to drain and expects that it does."""
        self.send(signal.SIGTERM)
        code = self.wait_for_end()
        assert code == 0, f"{self.name} drained with exit code {code}:\n{self._last_lines()}"

    def wait_for_end(self) -> int:
        self._wait_for(lambda: self.code is not None, "to end")
        return self._process.wait()

    def wait_for_pause(self) -> None:
        self._wait_for(lambda: self.is_running() and self.is_paused, "to stop itself")

    def wait_for_output(self, text: str, *, times: int = 1) -> None:
        """Until it has said `text` so many times."""
        self._wait_for(lambda: self.is_running() and self.output.count(text) >= times, f"to say {text!r}")

    def is_running(self) -> bool:
        """True, or a failure that shows what the process said before it ended."""
        assert self.code is None, f"{self.name} ended with {self.code}:\n{self._last_lines()}"
        return True

    def clear_away(self) -> None:
        """Ends the whole group, at the end of a test."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def _wait_for(self, condition: Any, what: str) -> None:
        try:
            wait_for(condition, f"{self.name} {what}")
        except AssertionError as err:
            raise AssertionError(f"{err}\n--- {self.name} said:\n{self._last_lines()}") from None

    def _last_lines(self) -> str:
        return "\n".join(self.output.splitlines()[-_LAST_LINES:])


class Processes:
    """Starts icestream commands, all with the same settings file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = folder / "icestream.yaml"
        self._started: list[Process] = []
        self._numbers = count(1)

    def start(self, *arguments: str, crash_at: str = "", pause_at: str = "") -> Process:
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PG", "POSTGRES"))},
            "ICESTREAM_CRASH_AT": crash_at,
            "ICESTREAM_PAUSE_AT": pause_at,
        }
        log = self.folder / f"{next(self._numbers):02d}-{arguments[0]}.log"
        process = Process((*arguments, "--config", str(self.settings)), environ, log)
        self._started.append(process)
        return process

    def capture(self, *, crash_at: str = "") -> Process:
        return self.start("stream-only", crash_at=crash_at)

    def worker(self, worker_id: str = "a", *, crash_at: str = "", pause_at: str = "") -> Process:
        return self.start("materializer-only", "--worker-id", worker_id, crash_at=crash_at, pause_at=pause_at)

    def run(self, *arguments: str, code: int = 0) -> str:
        """Runs a command to its end and gives what it said."""
        process = self.start(*arguments)
        ended = process.wait_for_end()
        assert ended == code, f"{arguments} ended with {ended}, not {code}:\n{process.output}"
        return process.output

    def clear_away(self) -> None:
        for process in self._started:
            process.clear_away()


def write_settings(
    path: Path, pipeline: Pipeline, warehouse: Path, *, conninfo: str | None = None, **sink: Any
) -> None:
    """The settings of `pipeline` as a file; the tables are in the catalog of the shared Spark."""
    own = pipeline.settings
    settings: dict[str, Any] = {
        "tables": [{"name": "public.*"}],
        "source": {
            "postgres": {"url": conninfo or pipeline.conninfo},
            "logical": {
                "slot_name": own.source.logical.slot_name,
                "publication_name": own.source.logical.publication_name,
                "standby_interval": "200ms",
                "watch_interval": "200ms",
            },
        },
        "sink": {
            "warehouse": own.sink.warehouse,
            "namespace": own.sink.namespace,
            "flush_interval": "100ms",
            "materializer_interval": "200ms",
            "catalog": catalog_in(warehouse),
            **sink,
        },
        "state": {"consumer_ttl": "3s"},
        "spark": {"master": "local[2]"},
    }
    path.write_text(yaml.safe_dump(settings))


def catalog_in(warehouse: Path) -> dict[str, str]:
    return {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{warehouse}/catalog.db?journal_mode=WAL&busy_timeout=30000",
        "jdbc.schema-version": "V1",
        "warehouse": str(warehouse),
    }


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Without settings yet: `write_settings`, or the fixture `shop`, makes them."""
    folder = tmp_path / "processes"
    folder.mkdir()
    processes = Processes(folder)
    yield processes
    processes.clear_away()
