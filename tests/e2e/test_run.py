"""`icestream run` as a process: it serves, heals, drains, and can be stopped at once."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest

from icestream.config import load
from icestream.config.environment import all_variables
from icestream.embedded.row_counts import row_counts
from icestream.errors import StateVersionMismatch
from icestream.model.position import Lsn
from icestream.model.table import TableState
from icestream.runtime import exits
from icestream.runtime.child import icestream_command
from icestream.runtime.opening import opened_state
from icestream.state.database import Database
from icestream.state.leases import Leases
from icestream.state.log_index import LogIndex
from icestream.state.tables import Tables
from support.settings import environment_for
from support.waiting import PATIENCE_S, wait_for

T = TypeVar("T")


class Pipeline:
    """A running `icestream run`, and the questions a test asks about it."""

    def __init__(self, environ: dict[str, str], log: Path, db: Database) -> None:
        self._settings = load(None, environ).settings
        self._db = db
        self._log = log
        clean = {name: value for name, value in os.environ.items() if name not in all_variables()}
        with log.open("wb") as output:
            self.process = subprocess.Popen(icestream_command("run"), env={**clean, **environ}, stderr=output)

    def is_live(self) -> bool:
        assert self.process.poll() is None, self.log()
        rows = self._if_there(Tables(self._db, self._settings.pipeline).all, [])
        return [row.state for row in rows] == [TableState.LIVE]

    def worker_pid(self) -> int | None:
        leases = Leases(self._db, self._settings.pipeline, self._settings.state.group)
        return next((worker.pid for worker in self._if_there(leases.workers, [])), None)

    def has_captured(self, position: Lsn) -> bool:
        flushed = LogIndex(self._db, self._settings.pipeline).flushed()
        return flushed is not None and flushed.position >= position

    def iceberg_rows(self) -> int | None:
        return row_counts(Path(self._settings.sink.warehouse) / "catalog.db", "icestream").get("public.orders")

    def get(self, page: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1{self._settings.metrics_addr}{page}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as err:
            return err.code, err.read().decode()

    def log(self) -> str:
        return self._log.read_text()

    def _if_there(self, read: Callable[[], T], otherwise: T) -> T:
        """The schema is made by `run`, shortly after its start."""
        try:
            return read()
        except StateVersionMismatch:
            return otherwise


@pytest.fixture
def pipeline(environ: dict[str, str], tmp_path: Path) -> Iterator[Pipeline]:
    with opened_state(load(None, environ).settings) as db:
        pipeline = Pipeline(environ, tmp_path / "log", db)
        yield pipeline
        if pipeline.process.poll() is None:
            pipeline.process.terminate()
            pipeline.process.wait(PATIENCE_S)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def environ(database: str, tmp_path: Path) -> dict[str, str]:
    with psycopg.connect(database) as conn:
        conn.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        conn.execute("INSERT INTO orders SELECT n, 'first' FROM generate_series(1, 10) n")
    name = "run_" + database.partition("dbname=")[2].split()[0]
    variables = {"SLOT_NAME": name, "PUBLICATION_NAME": name, "METRICS_ADDR": f":{free_port()}"}
    return environment_for(database, tmp_path / "warehouse", **variables)


def test_run_serves_heals_and_drains(pipeline: Pipeline, database: str) -> None:
    wait_for(pipeline.is_live, "the first copy")
    assert pipeline.iceberg_rows() == 10
    assert (pipeline.get("/live")[0], pipeline.get("/ready")[0]) == (200, 200)
    assert 'icestream_role_up{role="worker"} 1.0' in pipeline.get("/metrics")[1]

    killed = pipeline.worker_pid()
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: pipeline.worker_pid() not in (killed, None), "another worker")

    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("INSERT INTO orders SELECT n, 'second' FROM generate_series(11, 25) n")
        (position,) = conn.execute("SELECT pg_current_wal_insert_lsn()::text").fetchall()[0]
    wait_for(lambda: pipeline.has_captured(Lsn.parse(position)), "the new rows to be captured")
    pipeline.process.send_signal(signal.SIGTERM)
    assert pipeline.process.wait(PATIENCE_S) == exits.OK, pipeline.log()
    assert pipeline.iceberg_rows() == 25
    assert pipeline.worker_pid() is None
    assert "Traceback" not in pipeline.log()


def test_a_second_signal_ends_run_and_its_children_at_once(pipeline: Pipeline) -> None:
    worker = wait_for(pipeline.worker_pid, "the worker")
    assert worker is not None
    pipeline.process.send_signal(signal.SIGINT)
    wait_for(lambda: "role stopping" in pipeline.log(), "the drain")
    pipeline.process.send_signal(signal.SIGINT)
    assert pipeline.process.wait(PATIENCE_S) == 128 + signal.SIGINT
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
