from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from icestream.errors import SourceUnavailable
from icestream.runtime.running import run_until_stopped
from icestream.runtime.signals import STOP_SIGNALS, StopSignals
from support.waiting import wait_for

_ROLE = """
import sys, threading
from icestream.runtime.running import run_until_stopped
def body(stop):
    print("working", flush=True)
    stop.wait()
    print("draining", flush=True)
    {ending}
run_until_stopped(body, supervised={supervised})
print("done", flush=True)
"""


def role(ending: str = "pass", *, supervised: bool = False) -> subprocess.Popen[str]:
    script = _ROLE.format(ending=ending, supervised=supervised)
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    return process


@pytest.mark.parametrize("signum", STOP_SIGNALS)
def test_the_first_signal_drains(signum: signal.Signals) -> None:
    process = role()
    process.send_signal(signum)
    assert process.communicate(timeout=30)[0].split() == ["draining", "done"]
    assert process.returncode == 0


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_second_signal_stops_at_once(signum: signal.Signals, code: int) -> None:
    process = role("threading.Event().wait()")
    process.send_signal(signum)
    assert process.stdout is not None
    assert process.stdout.readline() == "draining\n"
    process.send_signal(signum)
    process.communicate(timeout=30)
    assert process.returncode == code


def test_a_supervised_role_drains_when_its_stdin_ends() -> None:
    process = role(supervised=True)
    assert process.communicate(timeout=30)[0].split() == ["draining", "done"]
    assert process.returncode == 0


def test_what_the_role_raises_is_raised() -> None:
    def failing(stop: threading.Event) -> None:
        raise SourceUnavailable("gone")

    with pytest.raises(SourceUnavailable, match="gone"):
        run_until_stopped(failing, supervised=False)


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(signum) for signum in STOP_SIGNALS]
    second: list[int] = []
    stop = threading.Event()
    with StopSignals(stop, at_once=second.append):
        os.kill(os.getpid(), signal.SIGTERM)
        wait_for(stop.is_set, "the first signal")
        os.kill(os.getpid(), signal.SIGTERM)
        wait_for(lambda: second == [signal.SIGTERM], "the second signal")
    assert [signal.getsignal(signum) for signum in STOP_SIGNALS] == before
