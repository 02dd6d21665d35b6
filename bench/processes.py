"""Icestream's roles as processes of their own, as a user would run them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_STOP_TIMEOUT_S = 120.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Role:
    """One child process from its start until the end of the block. Its log is kept in a file, its moments in memory."""

    def __init__(self, arguments: list[str], log_file: Path) -> None:
        self.name = arguments[0]
        self._log_file = log_file
        self._seen: dict[str, float] = {}
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "icestream", *arguments, "--log-format", "json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(log_file.parent)},
            start_new_session=True,  # Ctrl-C is for the bench, which stops its children in order
        )
        self._reader = threading.Thread(target=self._read_log, name=f"log of {self.name}", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def said(self, message: str) -> float | None:
        """When the role first said so, by the monotonic clock. Raises RuntimeError when it has ended."""
        self.require_running()
        return self._seen.get(message)

    def require_running(self) -> None:
        if self._process.poll() is not None:
            last = "".join(self._log_file.read_text().splitlines(keepends=True)[-5:])
            raise RuntimeError(f"icestream {self.name} has ended with {self._process.returncode}:\n{last}")

    def stop(self) -> None:
        """Lets it drain; may be repeated."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._reader.join()

    def peak_mb(self) -> float:
        """The most memory it ever had resident; for a worker, with the JVM and the Python tasks it has now."""
        return sum(_status_kb(pid, "VmHWM") for pid in _family(self._process.pid)) / 1024

    def resident_mb(self) -> float:
        """What it has resident now, with all its children; pages they share are counted for each."""
        return sum(_status_kb(pid, "VmRSS") for pid in _family(self._process.pid)) / 1024

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines, self._log_file.open("ab") as file:
            for line in lines:
                self._seen.setdefault(_message(line), time.monotonic())
                file.write(line)
                file.flush()


def _message(line: bytes) -> str:
    with contextlib.suppress(ValueError):
        entry: Any = json.loads(line)
        if isinstance(entry, dict):
            return str(entry.get("message"))
    return ""


def _family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def _status_kb(pid: int, field: str) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1])
    return 0
