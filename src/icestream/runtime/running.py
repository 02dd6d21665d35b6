"""How a role runs in its process: signals, the tie to the supervisor, metrics; the role itself knows none of it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext

from prometheus_client.registry import Collector

from icestream.config.settings import Settings
from icestream.observe.health import Health, Pulse
from icestream.observe.metrics import registry_of
from icestream.observe.server import HealthServer
from icestream.runtime.collector import StatusCollector
from icestream.runtime.opening import opened_source
from icestream.runtime.signals import StopSignals
from icestream.runtime.status import read_status
from icestream.state.database import Database

log = logging.getLogger(__name__)

Body = Callable[[threading.Event], None]


def run_until_stopped(body: Body, *, supervised: bool) -> None:
    """Runs `body` with an event that says when to drain; raises what it raises.

    The body has a thread of its own: the main one stays free for signals, and Spark, which puts its own SIGINT handler
    into a main thread, can't take ours away.
    """
    stop = threading.Event()
    with StopSignals(stop), ThreadPoolExecutor(1, thread_name_prefix="role") as executor:
        if supervised:
            drain_with_supervisor(stop)
        executor.submit(body, stop).result()


def drain_with_supervisor(stop: threading.Event) -> None:
    """Sets `stop` when the supervisor is gone: it holds the other end of our stdin."""
    threading.Thread(target=_stop_at_end_of_stdin, args=(stop,), name="supervised", daemon=True).start()


def _stop_at_end_of_stdin(stop: threading.Event) -> None:
    # Not through sys.stdin: its lock, held by a thread that reads, would abort the interpreter at the end.
    while os.read(0, 4096):
        pass
    if not stop.is_set():
        log.warning("supervisor is gone, draining")
        stop.set()


@contextmanager
def beside(work: Body, *, name: str) -> Iterator[None]:
    """Runs `work` in a thread of its own while the block runs; its event says that the block has ended."""
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(ended,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def serving_metrics(
    settings: Settings, db: Database, pulse: Pulse, *own: Collector, supervised: bool
) -> AbstractContextManager[object]:
    """The HTTP server of a role that runs by itself; a supervised one leaves that to its supervisor.

    `pulse` is the role's own, `own` counts what only this process knows.
    """
    endpoint = settings.metrics_endpoint()
    if supervised or endpoint is None:
        return nullcontext()
    registry = registry_of(StatusCollector(settings.pipeline, lambda: read_status(db, settings)), *own)
    return HealthServer(endpoint, registry, live=pulse.live, ready=lambda: ready_to_work(pulse, settings, db))


def ready_to_work(pulse: Pulse, settings: Settings, db: Database) -> Health:
    """Raises as `both_ends_answer` does."""
    own = pulse.ready()
    return both_ends_answer(settings, db) if own.ok else own


def both_ends_answer(settings: Settings, db: Database) -> Health:
    """Raises StateUnavailable or SourceUnavailable when one does not, which the server turns into an answer."""
    db.fetch_one("SELECT 1 AS answer")
    with opened_source(settings):
        return Health()
