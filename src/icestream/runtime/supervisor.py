"""Runs the roles as child processes: starts them again when they fail, stops them in order."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from icestream.observe.health import Beats, Health
from icestream.observe.logs import fields
from icestream.observe.steps import CRASH_AT, PAUSE_AT
from icestream.runtime import exits
from icestream.runtime.backoff import Backoff
from icestream.runtime.child import Child

log = logging.getLogger(__name__)

POLL_S = 0.1
LOOP = "supervisor"
SILENT_AFTER_S = 10.0
_BEFORE_ANY_WORK = -signal.SIGTERM  # our own signal came before the child's handlers were there


@dataclass(frozen=True)
class RoleSpec:
    """A role and the command that runs it."""

    name: str
    command: tuple[str, ...]


Reaped = Callable[[RoleSpec, int], None]


class Role:
    """A role's present child, if any, and when the next one is due."""

    def __init__(self, spec: RoleSpec, environ: Mapping[str, str], reaped: Reaped) -> None:
        self.spec = spec
        self.restarts = 0
        self._environ = dict(environ)
        self._reaped = reaped
        self._backoff = Backoff()
        self._child: Child | None = None
        self._due = 0.0

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        self._child = Child(self.spec.command, self._environ)
        log.info("role started", extra=fields(role=self.spec.name, pid=self._child.pid))

    def tend(self) -> int | None:
        """Starts the role again when it is due; the exit code if it has ended for good."""
        if self._child is not None:
            return self._after_end(self._child)
        if time.monotonic() >= self._due:
            self.restarts += 1
            self.start()
        return None

    def drain(self, while_waiting: Callable[[], None]) -> int:
        """Lets the child finish, however long it takes, and calls `while_waiting` again and again.

        0 when there is none: what it left is durable and is taken up at the next start.
        """
        if self._child is None:
            return exits.OK
        log.info("role stopping", extra=fields(role=self.spec.name))
        self._child.terminate()
        while self._child.poll() is None:
            while_waiting()
            time.sleep(POLL_S)
        code = self._child.wait()
        self._reaped(self.spec, self._child.pid)
        return exits.OK if code == _BEFORE_ANY_WORK else code

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()

    def _after_end(self, child: Child) -> int | None:
        code = child.poll()
        if code is None:
            return None
        self._child = None
        child.wait()
        self._reaped(self.spec, child.pid)
        if exits.is_final(code):
            return code
        self._schedule(child.age_s, code)
        return None

    def _schedule(self, run_s: float, code: int) -> None:
        delay = self._backoff.delay_after(run_s)
        self._due = time.monotonic() + delay
        self._environ = _without_faults(self._environ)
        log.warning("role ended, starting it again", extra=fields(role=self.spec.name, code=code, in_s=delay))


class Supervisor:
    """Starts and stops `roles` in the given order: who fills the log first, who empties it last."""

    def __init__(self, roles: Sequence[RoleSpec], environ: Mapping[str, str], *, reaped: Reaped) -> None:
        self.roles = [Role(spec, environ, reaped) for spec in roles]
        self.has_begun = False
        self._beats = Beats()

    def run(self, stop: threading.Event) -> int:
        """Returns the exit code: 0 after a drain that was asked for, a role's own code when it ended for good."""
        self.has_begun = True
        for role in self.roles:
            role.start()
        final = self._tend_until(stop)
        drained = self._drain_in_order()
        self._beats.end(LOOP)
        return drained if final is None else final

    def kill(self) -> None:
        """Ends all children at once. What is durable stays so; the rest is redone at the next start."""
        for role in self.roles:
            role.kill()

    def is_live(self) -> Health:
        return self._beats.check()

    def is_running(self) -> Health:
        down = tuple(f"{role.spec.name} is not running" for role in self.roles if not role.is_running)
        return Health(down)

    def _tend_until(self, stop: threading.Event) -> int | None:
        while not stop.wait(POLL_S):
            self._beat()
            for role in self.roles:
                code = role.tend()
                if code is not None:
                    log.error("role ended for good, stopping", extra=fields(role=role.spec.name, code=code))
                    return code
        return None

    def _drain_in_order(self) -> int:
        result = exits.OK
        for role in self.roles:
            code = role.drain(self._beat)
            if code != exits.OK:
                log.error("role did not drain", extra=fields(role=role.spec.name, code=code))
                result = exits.FAILED
        return result

    def _beat(self) -> None:
        self._beats.beat(LOOP, within_s=SILENT_AFTER_S)


def _without_faults(environ: Mapping[str, str]) -> dict[str, str]:
    """A fault is for the first run of a role; a restarted one would fall into it for ever."""
    return {name: value for name, value in environ.items() if name not in (CRASH_AT, PAUSE_AT)}
