"""One signal drains, a second one stops at once; neither loses anything."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from icestream.model.table import TableState
from support.processes import Process, write_settings
from support.shop import Shop
from support.waiting import wait_for


@pytest.fixture
def patient(shop: Shop, warehouse: Path) -> Shop:
    """Changes wait in the log until the worker drains."""
    write_settings(shop.processes.settings, shop.pipeline, warehouse, materializer_interval="1h")
    return shop


def test_run_applies_what_was_captured_before_it_ends(patient: Shop) -> None:
    run = _running_with_changes_that_wait(patient, "")
    run.stop()
    assert _slot_is_acknowledged(patient), "the slot still holds what is durable"
    patient.assert_mirrored()


def test_a_second_signal_ends_run_at_once_and_loses_nothing(patient: Shop) -> None:
    run = _running_with_changes_that_wait(patient, pause_at="batch staged")
    roles = _role_pids(run)
    run.send(signal.SIGINT)
    wait_for(lambda: _is_paused(roles["worker"]), "the worker to be in the middle of its drain")
    run.send(signal.SIGINT)
    assert run.wait_for_end() == 128 + signal.SIGINT
    assert not any(Path(f"/proc/{pid}/cmdline").exists() for pid in roles.values()), "a role outlived its supervisor"
    patient.change()
    with patient.pipeline.capturing():
        patient.bring_forward()
    patient.assert_mirrored()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_capture_alone_drains(shop: Shop, signum: signal.Signals) -> None:
    shop.go_live()
    capture = shop.processes.capture()
    capture.wait_for_output("streaming")
    shop.change()
    shop.pipeline.wait_until_captured()
    capture.send(signum)
    assert capture.wait_for_end() == 0, capture.output
    assert _slot_is_acknowledged(shop)


def _running_with_changes_that_wait(shop: Shop, pause_at: str) -> Process:
    run = shop.processes.start("run", pause_at=pause_at)
    wait_for(lambda: set(shop.states().values()) == {TableState.LIVE} and run.is_running(), "the first copies")
    shop.change()
    shop.pipeline.wait_until_captured()
    assert shop.pipeline.entries.pending(shop.pipeline.owner.group), "nothing waits for the drain"
    return run


def _role_pids(run: Process) -> dict[str, int]:
    found = re.findall(r"role started role=(\w+) pid=(\d+)", run.output)
    return {role: int(pid) for role, pid in found}


def _is_paused(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def _slot_is_acknowledged(shop: Shop) -> bool:
    flushed = shop.pipeline.index.flushed()
    assert flushed is not None
    row = shop.pipeline.source.execute(
        "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots WHERE slot_name = %s",
        [str(flushed.position), shop.pipeline.settings.source.logical.slot_name],
    ).fetchone()
    return row == (True,)
