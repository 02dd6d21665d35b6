from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from icestream.observe.steps import CRASH_AT
from icestream.runtime import exits, supervisor
from icestream.runtime.backoff import FIRST_DELAY_S, HEALTHY_AFTER_S, LONGEST_DELAY_S, Backoff
from icestream.runtime.supervisor import RoleSpec, Supervisor
from support.waiting import wait_for

# A child that notes its steps in a file, drains on SIGTERM or when its stdin ends.
_CHILD = """
import os, signal, sys, threading
notes, name, code = sys.argv[1:]
def note(text):
    with open(notes, "a") as file:
        file.write(f"{name} {text}\\n")
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: os._exit((note("drained"), int(code))[1]))
note("started" + (" faulty" if "ICESTREAM_CRASH_AT" in os.environ else ""))
sys.stdin.buffer.read()
note("orphaned")
"""
_ENDING = "import sys; sys.exit({code})"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    file = tmp_path / "notes"
    file.touch()
    return file


def lines(notes: Path) -> list[str]:
    return notes.read_text().splitlines()


def child(notes: Path, name: str, code: int = 0) -> RoleSpec:
    return RoleSpec(name, (sys.executable, "-c", _CHILD, str(notes), name, str(code)))


def ending(name: str, code: int) -> RoleSpec:
    return RoleSpec(name, (sys.executable, "-c", _ENDING.format(code=code)))


class Running:
    def __init__(self, roles: list[RoleSpec], environ: dict[str, str]) -> None:
        self.reaped: list[tuple[str, int]] = []
        self.supervisor = Supervisor(roles, environ, reaped=lambda role, pid: self.reaped.append((role.name, pid)))
        self.stop = threading.Event()
        self.code: int | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self.code = self.supervisor.run(self.stop)

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self._thread.join(30)
        self.supervisor.kill()

    def end(self) -> int | None:
        self.stop.set()
        self._thread.join(30)
        return self.code

    def wait(self) -> int | None:
        self._thread.join(30)
        return self.code

    def pid(self, role: int = 0) -> int:
        current = self.supervisor.roles[role]._child
        assert current is not None
        return current.pid


@contextmanager
def supervising(*roles: RoleSpec, environ: dict[str, str] | None = None) -> Iterator[Running]:
    with Running(list(roles), {**os.environ, **(environ or {})}) as running:
        yield running


def seen(notes: Path, *wanted: str) -> Callable[[], bool]:
    return lambda: set(wanted) <= set(lines(notes))


def test_stops_the_roles_in_their_order_and_ends_with_zero(notes: Path) -> None:
    with supervising(child(notes, "capture"), child(notes, "worker")) as running:
        wait_for(seen(notes, "capture started", "worker started"), "both roles")
        assert running.supervisor.is_running().ok
        assert running.supervisor.is_live().ok
        assert running.end() == exits.OK
    assert lines(notes)[-2:] == ["capture drained", "worker drained"]
    assert [name for name, _ in running.reaped] == ["capture", "worker"]


def test_a_role_that_is_stopped_before_it_can_drain_counts_as_drained(notes: Path) -> None:
    starting = RoleSpec("capture", (sys.executable, "-c", "import sys; sys.stdin.buffer.read()"))
    with supervising(starting, child(notes, "worker")) as running:
        wait_for(seen(notes, "worker started"), "the worker")
        assert running.end() == exits.OK
    assert lines(notes)[-1] == "worker drained"


def test_starts_a_killed_role_again_without_the_fault_that_killed_it(notes: Path) -> None:
    with supervising(child(notes, "capture"), environ={CRASH_AT: "anything"}) as running:
        wait_for(seen(notes, "capture started faulty"), "the first run")
        first = running.pid()
        os.kill(first, signal.SIGKILL)
        wait_for(seen(notes, "capture started"), "the second run")
        assert running.reaped == [("capture", first)]
        assert running.supervisor.roles[0].restarts == 1
        assert running.end() == exits.OK


@pytest.mark.parametrize("code", [exits.FAILED, exits.USAGE])
def test_a_role_that_can_never_work_stops_everything_with_its_code(notes: Path, code: int) -> None:
    with supervising(ending("capture", code), child(notes, "worker")) as running:
        assert running.wait() == code
    assert "worker orphaned" not in lines(notes)


@pytest.mark.parametrize("code", [exits.TRY_LATER, exits.INTERNAL, exits.OK])
def test_any_other_end_is_tried_again(code: int) -> None:
    with supervising(ending("capture", code)) as running:
        wait_for(lambda: running.supervisor.roles[0].restarts >= 1, "a restart")


def test_a_role_that_cannot_drain_is_told_by_the_exit_code(notes: Path) -> None:
    with supervising(child(notes, "capture", code=exits.TRY_LATER), child(notes, "worker")) as running:
        wait_for(seen(notes, "capture started", "worker started"), "both roles")
        assert running.end() == exits.FAILED
    assert "worker drained" in lines(notes)


def test_it_is_live_while_a_role_takes_long_to_drain(tmp_path: Path) -> None:
    ready, draining, done = (tmp_path / name for name in ("ready", "draining", "done"))
    script = f"""
import pathlib, signal, sys, time
def drain(*_):
    pathlib.Path({str(draining)!r}).touch()
    while not pathlib.Path({str(done)!r}).exists():
        time.sleep(0.01)
    sys.exit(0)
signal.signal(signal.SIGTERM, drain)
pathlib.Path({str(ready)!r}).touch()
while True:
    signal.pause()
"""
    with supervising(RoleSpec("slow", (sys.executable, "-c", script))) as running:
        wait_for(ready.exists, what="the slow child")
        running.stop.set()
        wait_for(draining.exists, what="the drain")
        before = dict(running.supervisor._beats._last)
        wait_for(lambda: running.supervisor._beats._last != before, "another beat")
        assert running.supervisor.is_live().ok
        done.touch()
        assert running.wait() == exits.OK


def test_kill_ends_a_child_that_does_not_listen(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    script = f"""
import pathlib, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path({str(ready)!r}).touch()
while True:
    signal.pause()
"""
    with supervising(RoleSpec("deaf", (sys.executable, "-c", script))) as running:
        wait_for(ready.exists, "the deaf child")
        running.stop.set()
        running.supervisor.kill()
        assert running.wait() == exits.FAILED


def test_a_child_drains_when_its_supervisor_is_killed(notes: Path) -> None:
    script = f"""
import os, sys, threading
from icestream.runtime.supervisor import RoleSpec, Supervisor
spec = RoleSpec("capture", {child(notes, "capture").command!r})
Supervisor([spec], os.environ, reaped=lambda *_: None).run(threading.Event())
"""
    process = subprocess.Popen([sys.executable, "-c", script])
    try:
        wait_for(seen(notes, "capture started"), "the child")
    finally:
        process.kill()
        process.wait()
    wait_for(seen(notes, "capture orphaned"), "the child's drain")


def test_delays_double_up_to_a_limit_and_begin_anew_after_a_healthy_run() -> None:
    backoff = Backoff()
    delays = [backoff.delay_after(1.0) for _ in range(9)]
    assert delays[:3] == [FIRST_DELAY_S, 2 * FIRST_DELAY_S, 4 * FIRST_DELAY_S]
    assert delays[-1] == LONGEST_DELAY_S
    assert backoff.delay_after(HEALTHY_AFTER_S) == FIRST_DELAY_S


def test_faults_are_taken_out_of_the_environment() -> None:
    assert supervisor._without_faults({CRASH_AT: "x", "HOME": "/"}) == {"HOME": "/"}
