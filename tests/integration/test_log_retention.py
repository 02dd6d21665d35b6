"""The sweep: what cannot be removed is left, the rest goes."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from icestream.log.retention import LogRetention
from icestream.log.store import LocalStore
from icestream.state.database import Database
from icestream.state.retention import Retention
from support.state import PIPELINE, LogDriver

FILES = [f"{PIPELINE}/t/{number}.parquet" for number in range(5)]
STUCK = FILES[0]


@pytest.fixture
def retention(state: Database, log: LogDriver) -> Retention:
    """Uploads that were never claimed."""
    log.index.intend(FILES)
    log.claim()
    return Retention(state, PIPELINE)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """One of the files is a folder with something in it, which cannot be removed like a file."""
    store = LocalStore(tmp_path)
    for path in FILES[1:]:
        store.put(path, b"rows")
    store.put(f"{STUCK}/inside", b"rows")
    return store


def sweeper(retention: Retention, store: LocalStore) -> LogRetention:
    return LogRetention(retention, store, keep_s=0, grace_s=0)


def test_a_file_that_cannot_be_removed_does_not_stop_the_sweep(
    retention: Retention, store: LocalStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sweep = sweeper(retention, store)
    for _ in range(3):
        sweep.try_sweep()
    assert not any(store.exists(path) for path in FILES[1:])
    assert retention.garbage() == [STUCK]
    assert [record.levelno for record in caplog.records if "cannot be removed" in record.getMessage()] == [
        logging.WARNING
    ]

    (tmp_path / STUCK / "inside").unlink()
    (tmp_path / STUCK).rmdir()
    assert sweep.sweep() == 1
    assert retention.garbage() == []


def test_a_store_that_refuses_everything_ends_the_sweep(
    retention: Retention, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icestream.log.retention._MOST_LEFT", 1)
    assert sweeper(retention, store).sweep() == 0
    assert sorted(retention.garbage()) == FILES


def test_what_nobody_foresaw_does_not_end_the_thread(
    retention: Retention, store: LocalStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_keep_s: float) -> int:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(retention, "give_up_passed", fail)
    sweeper(retention, store).try_sweep()
    assert "sweep failed" in caplog.text


def test_a_sweep_forgets_letters_too(retention: Retention, store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(retention, "forget_letters", lambda: asked.append("letters"))
    sweeper(retention, store).sweep()
    assert asked == ["letters"]
