from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from icestream.errors import SettingsError
from icestream.observe import steps

_SCRIPT = """
from icestream.observe.steps import reached
for number in range(3):
    reached("other")
    reached("offsets claimed")
    print(number, flush=True)
"""


def run(**environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _SCRIPT], env={**os.environ, **environ}, stdout=subprocess.PIPE, text=True
    )


def test_without_a_fault_nothing_happens() -> None:
    process = run()
    assert process.communicate()[0].split() == ["0", "1", "2"]
    assert process.returncode == 0


def test_a_crash_kills_the_process_at_the_nth_time() -> None:
    process = run(ICESTREAM_CRASH_AT="offsets claimed:2")
    assert process.communicate()[0].split() == ["0"]
    assert process.returncode == -signal.SIGKILL


def test_a_pause_stops_the_process_until_it_is_continued() -> None:
    process = run(ICESTREAM_PAUSE_AT="offsets claimed")
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    os.kill(process.pid, signal.SIGCONT)
    assert process.communicate()[0].split() == ["0", "1", "2"]


def test_a_fault_fires_once() -> None:
    fault = steps.Fault("step", 1, signal.SIGCONT)
    for _ in range(3):
        fault.observe("step")
    assert fault._left == -2


@pytest.mark.parametrize("value", ["step:", "step:0", "step:x", ":1"])
def test_a_malformed_fault_is_refused(value: str) -> None:
    with pytest.raises(SettingsError, match="ICESTREAM_CRASH_AT"):
        steps.faults_in({steps.CRASH_AT: value})
