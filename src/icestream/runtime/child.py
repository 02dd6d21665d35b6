"""One child process of the supervisor."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import IO

SUPERVISED = "--supervised"


def icestream_command(*arguments: str) -> list[str]:
    """The command line that runs this very installation, whatever the working directory holds (`-P`)."""
    return [sys.executable, "-P", "-m", "icestream", *arguments]


class Child:
    """A running process in its own session, so that Ctrl-C on the terminal reaches only the supervisor.

    It holds the reading end of a pipe as its stdin: when the supervisor dies, in whatever way, the child reads the
    end of the pipe and drains by itself.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], *, output: IO[bytes] | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        self._started = time.monotonic()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._started

    def poll(self) -> int | None:
        """The exit code once the process has ended, negative for a signal."""
        return self._process.poll()

    def terminate(self) -> None:
        """Asks the process to finish its work, which may take long."""
        self._process.terminate()

    def drain(self) -> int:
        """Asks the process to finish its work, and waits for that however long it takes."""
        self.terminate()
        return self.wait()

    def wait(self, timeout_s: float | None = None) -> int:
        code = self._process.wait(timeout_s)
        self._close()
        return code

    def kill(self) -> None:
        """Ends the process and what runs in its session (a JVM) without a word. May be repeated."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._close()

    def _close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
