"""Roles may be started in any order: a worker waits for the capture that makes the coordination schema."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from icestream.config.environment import all_variables
from icestream.errors import StateMissing, StateVersionMismatch
from icestream.observe.health import Pulse
from icestream.runtime import exits, reachable
from icestream.runtime.child import icestream_command
from icestream.runtime.reachable import when_capture_has_begun
from icestream.state.database import Database
from icestream.state.migrate import migrate, require_current
from support.settings import environment_for
from support.state import SCHEMA
from support.waiting import wait_for


@pytest.fixture
def db(database: str) -> Iterator[Database]:
    """Nothing was made in it yet."""
    with closing(Database(database, SCHEMA)) as db:
        yield db


def test_a_worker_waits_until_the_schema_is_there(
    db: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reachable, "_NEXT_LOOK_S", 0.01)
    looks: list[None] = []

    def look() -> None:
        looks.append(None)
        require_current(db)

    with ThreadPoolExecutor(1) as executor:
        begun = executor.submit(when_capture_has_begun, look, threading.Event(), Pulse("worker"))
        wait_for(lambda: len(looks) > 3, "several looks")
        assert not begun.done()
        migrate(db)
        assert begun.result()
    assert [record.message for record in caplog.records] == ["waiting for capture"]


def test_a_schema_of_a_newer_version_is_not_waited_for(db: Database) -> None:
    migrate(db)
    db.execute("INSERT INTO {schema}.schema_version (version, name) VALUES (9999, 'of tomorrow')")
    with pytest.raises(StateVersionMismatch) as refused:
        when_capture_has_begun(partial(require_current, db), threading.Event(), Pulse("worker"))
    assert not isinstance(refused.value, StateMissing)


def test_a_worker_that_waits_for_capture_can_be_stopped(database: str, tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in all_variables()}
    command = icestream_command("materializer-only", "--worker-id", "w1", "--log-format", "json")
    environ = {**clean, **environment_for(database, tmp_path, SLOT_NAME="waiting_slot")}
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = json.loads(process.stderr.readline())
        process.terminate()
        rest = process.stderr.read()
    assert told["message"] == "waiting for capture" and "stream-only" in told["hint"]
    assert process.returncode == exits.OK, rest
