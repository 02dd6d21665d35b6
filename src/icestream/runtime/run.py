"""`icestream run`: the roles of one pipeline as child processes of this one."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from icestream.config.settings import Settings
from icestream.errors import StateError
from icestream.observe.health import Health, Pulse
from icestream.observe.logs import fields
from icestream.observe.metrics import registry_of
from icestream.observe.server import HealthServer
from icestream.runtime import exits
from icestream.runtime.child import SUPERVISED, icestream_command
from icestream.runtime.collector import RoleCollector, StatusCollector
from icestream.runtime.copy_once import run_until_copied
from icestream.runtime.opening import opened_state
from icestream.runtime.preparation import prepare
from icestream.runtime.reachable import when_reachable
from icestream.runtime.running import both_ends_answer, drain_with_supervisor
from icestream.runtime.signals import StopSignals, exit_at_once
from icestream.runtime.status import read_status
from icestream.runtime.supervisor import Reaped, RoleSpec, Supervisor
from icestream.state.database import Database
from icestream.state.leases import Leases

log = logging.getLogger(__name__)

CAPTURE = "capture"
WORKER = "worker"
WORKER_ID = "run-1"


def run_pipeline(
    settings: Settings, *, arguments: Sequence[str], environ: Mapping[str, str], supervised: bool = False
) -> int:
    """Runs until a signal asks to stop, then drains; returns the exit code. `snapshot_only`: until all is copied.

    `arguments` and `environ` lead a child process to the same settings.
    """
    with opened_state(settings) as db:
        supervisor = Supervisor(_roles(arguments), environ, reaped=_lease_releaser(db, settings))
        pulse = Pulse("the pipeline")
        with _stopping(supervisor) as stop, _serving(settings, db, supervisor, pulse):
            if supervised:
                drain_with_supervisor(stop)
            if not when_reachable(lambda: prepare(settings, db), stop, pulse):
                return exits.OK
            if settings.snapshot_only:
                return run_until_copied(supervisor, settings, db, stop)
            return supervisor.run(stop)


def _roles(arguments: Sequence[str]) -> list[RoleSpec]:
    """In the order of the data's way."""
    capture = icestream_command("stream-only", SUPERVISED, *arguments)
    worker = icestream_command("materializer-only", SUPERVISED, "--worker-id", WORKER_ID, *arguments)
    return [RoleSpec(CAPTURE, tuple(capture)), RoleSpec(WORKER, tuple(worker))]


@contextmanager
def _stopping(supervisor: Supervisor) -> Iterator[threading.Event]:
    """Gives the event that the first signal sets; the second takes the children along."""

    def end_at_once(signum: int) -> None:
        supervisor.kill()
        exit_at_once(signum)

    stop = threading.Event()
    with StopSignals(stop, at_once=end_at_once):
        yield stop


def _serving(settings: Settings, db: Database, supervisor: Supervisor, start: Pulse) -> AbstractContextManager[object]:
    """From the first moment: whoever waits for the process has to see what that waits for."""
    endpoint = settings.metrics_endpoint()
    if endpoint is None:
        return nullcontext()
    registry = registry_of(
        StatusCollector(settings.pipeline, lambda: read_status(db, settings)), RoleCollector(supervisor.roles)
    )
    return HealthServer(
        endpoint, registry, live=supervisor.is_live, ready=lambda: _ready(settings, db, supervisor, start)
    )


def _ready(settings: Settings, db: Database, supervisor: Supervisor, start: Pulse) -> Health:
    """Before the roles are started, `start` says what for that waits."""
    running = supervisor.is_running()
    if running.ok:
        return both_ends_answer(settings, db)
    return running if supervisor.has_begun else start.ready()


def _lease_releaser(db: Database, settings: Settings) -> Reaped:
    leases = Leases(db, settings.pipeline, settings.state.group)

    def release(role: RoleSpec, pid: int) -> None:
        if role.name == WORKER:
            try_release_leases(leases, pid)

    return release


def try_release_leases(leases: Leases, pid: int) -> None:
    """Ends the leases of a worker process of this machine that is known to be gone.

    If that fails, they end by themselves when their time is up.
    """
    try:
        for worker in leases.workers():
            if (worker.host, worker.pid) == (socket.gethostname(), pid):
                leases.release(worker.worker_id, worker.instance)
    except StateError as err:
        log.debug("lease not released", exc_info=err, extra=fields(pid=pid))
