from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from icestream.cli.status import _print
from icestream.config import Settings, load
from icestream.errors import SettingsError, StateError, StateUnavailable, StateVersionMismatch
from icestream.model.copying import CopyRange, WrittenFile
from icestream.model.cursor import Cursor
from icestream.model.ids import new_epoch
from icestream.model.position import Lsn
from icestream.model.table import TableName, TableState, Target
from icestream.observe.metrics import registry_of
from icestream.runtime.collector import StatusCollector
from icestream.runtime.forgetting import forget_group
from icestream.runtime.opening import opened_state
from icestream.runtime.resync import request_copies
from icestream.runtime.run import try_release_leases
from icestream.runtime.status import SlotStatus, Status, read_status
from icestream.state.copy_progress import CopyProgress
from icestream.state.cursors import Cursors
from icestream.state.database import Database
from icestream.state.dead_letters import DeadLetter, DeadLetters
from icestream.state.groups import Groups
from icestream.state.leases import Leases
from icestream.state.letter_moves import LetterMoves
from icestream.state.retention import Retention
from icestream.state.tables import TableDefinition, Tables
from support.capturing import CaptureBench
from support.settings import environment_for, settings_for
from support.state import PIPELINE, LogDriver, staged
from support.waiting import wait_for

ORDERS = "public.orders"


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return settings_for(database, tmp_path, SLOT_NAME=PIPELINE)


@pytest.fixture
def tables(state: Database) -> Tables:
    """One table that is copied and live."""
    tables = Tables(state, PIPELINE, "default")
    tables.sync([TableDefinition(Target("public", "orders"), TableName("public", "orders"), 16400)])
    tables.complete_copy(ORDERS, position=Lsn(1000), rows=5)
    return tables


def test_before_anything_has_run_the_next_command_is_told(settings: Settings) -> None:
    with opened_state(settings) as db, pytest.raises(StateVersionMismatch) as refused:
        read_status(db, settings)
    assert refused.value.hint == "run `icestream migrate-coord`"


def test_a_table_that_is_behind_shows_what_waits(
    state: Database, settings: Settings, tables: Tables, log: LogDriver
) -> None:
    log.claim(staged(records=10, size=100))
    log.claim(staged(records=7, size=50))
    Cursors(state, PIPELINE, "default").record(ORDERS, Cursor(log.epoch, 10, 1100), snapshot_id=1, rows=10, lag_ms=250)
    status = read_status(state, settings)
    (table,) = status.tables
    assert (table.name, table.source, table.state) == (ORDERS, "public.orders", "live")
    assert (table.pending_rows, table.pending_bytes, table.rows_applied) == (7, 50, 10)
    assert (table.copied_rows, table.commit_lag_ms, table.position) == (5, 250, Lsn(1100))
    assert table.lag_seconds >= 0
    assert (status.position, status.epoch) == (log.position, log.epoch)
    assert status.source_lag_bytes is not None


def test_a_table_that_has_caught_up_has_no_lag(
    state: Database, settings: Settings, tables: Tables, log: LogDriver
) -> None:
    log.claim(staged(records=10))
    Cursors(state, PIPELINE, "default").record(ORDERS, Cursor(log.epoch, 10, 1100), snapshot_id=1, rows=10)
    (table,) = read_status(state, settings).tables
    assert (table.pending_rows, table.lag_seconds) == (0, 0.0)


def test_workers_are_shown_with_their_tables(
    state: Database, settings: Settings, tables: Tables, log: LogDriver
) -> None:
    Leases(state, PIPELINE, "default").acquire("w1", new_epoch(), 30)
    (worker,) = read_status(state, settings).workers
    assert (worker.id, worker.host, worker.pid) == ("w1", socket.gethostname(), os.getpid())
    assert (worker.alive, worker.tables) == (True, (ORDERS,))


def test_status_is_fit_for_json(state: Database, settings: Settings, tables: Tables, log: LogDriver) -> None:
    tables.park(ORDERS, "the cursor is gone")
    shown = json.loads(json.dumps(read_status(state, settings).as_dict()))
    assert shown["position"] == str(log.position)
    assert shown["tables"][0]["reason"] == "the cursor is gone"
    assert shown["tables"][0]["hint"] == "run `icestream resync public.orders` to copy it again"


def test_metrics_say_what_the_status_says(state: Database, settings: Settings, tables: Tables, log: LogDriver) -> None:
    log.claim(staged(records=10))
    registry = registry_of(StatusCollector(PIPELINE, lambda: read_status(state, settings)))
    text = generate_latest(registry).decode()
    assert "icestream_state_up 1.0" in text
    assert 'icestream_table_pending_rows{table="public.orders"} 10.0' in text
    assert 'icestream_table_state{state="live",table="public.orders"} 1.0' in text
    assert 'icestream_table_state{state="parked",table="public.orders"} 0.0' in text


def test_failures_are_shown_until_it_works_again(
    state: Database, settings: Settings, tables: Tables, log: LogDriver
) -> None:
    registry = registry_of(StatusCollector(PIPELINE, lambda: read_status(state, settings)))
    tables.note_failure(ORDERS, "no space left")
    (table,) = read_status(state, settings).tables
    assert (table.failures, table.last_failure) == (1, "no space left")
    assert 'icestream_table_failures{table="public.orders"} 1.0' in generate_latest(registry).decode()
    tables.clear_failures(ORDERS)
    assert 'icestream_table_failures{table="public.orders"} 0.0' in generate_latest(registry).decode()


def test_dead_letters_are_counted_also_when_they_are_only_in_iceberg(
    state: Database, settings: Settings, tables: Tables, log: LogDriver
) -> None:
    letters, moves = DeadLetters(state, PIPELINE), LetterMoves(state, PIPELINE, "default")
    letters.add(DeadLetter(ORDERS, log.epoch, offset, Lsn(1), "price", {}, "NaN", "why") for offset in range(2))
    move = moves.begin("public", [ORDERS])
    assert move is not None
    moves.finish(move)
    assert Retention(state, PIPELINE).forget_letters() == 2
    letters.add([DeadLetter(ORDERS, log.epoch, 2, Lsn(1), "price", {}, "NaN", "why")])
    (table,) = read_status(state, settings).tables
    assert table.dead_letters == 3
    registry = registry_of(StatusCollector(PIPELINE, lambda: read_status(state, settings)))
    assert 'icestream_table_dead_letters{table="public.orders"} 3.0' in generate_latest(registry).decode()


def test_status_says_whether_capture_runs(bench: CaptureBench) -> None:
    assert read_status(bench.db, bench.settings).slot == SlotStatus(bench.slot, False, False, False, None, 10 * 1024**3)
    bench.execute("CREATE TABLE items (id int PRIMARY KEY)")
    with bench.running():
        wait_for(
            lambda: (slot := read_status(bench.db, bench.settings).slot) and slot.active, what="the slot to be read"
        )
    slot = read_status(bench.db, bench.settings).slot
    assert slot is not None and slot.exists and not slot.active
    assert slot.retained_bytes is not None


def test_nothing_is_cut_where_there_is_no_terminal(
    state: Database, settings: Settings, log: LogDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "a_table_with_a_name_that_is_much_longer_than_eighty_characters_" + "x" * 63
    Tables(state, PIPELINE, "default").sync([TableDefinition(Target("public", name), TableName("public", name), 1)])
    _print(read_status(state, settings))
    said = capsys.readouterr().out
    (line,) = (line for line in said.splitlines() if line.startswith("public."))
    assert line.split() == [f"public.{name}", "merge", "pending", "0", "0", "0.0", "s", "-", "0", "0"]
    assert len(line) < 300
    assert f"not running: slot '{PIPELINE}' does not exist" in said


def test_a_copy_that_is_under_way_is_shown(
    state: Database, settings: Settings, tables: Tables, log: LogDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read_status(state, settings).copy is None
    tables.request_copy(ORDERS)
    tables.offer_copy([ORDERS], snapshot_name="s", position=Lsn(5000))
    progress = CopyProgress(state, PIPELINE, "default")
    progress.plan(ORDERS, Lsn(5000), [CopyRange(n, 16400, n * 10, n * 10 + 10, 10) for n in range(4)])
    progress.note(ORDERS, Lsn(5000), range(2, 3), [WrittenFile("/lake/a", 3000, 700)])
    status = read_status(state, settings)
    (table,) = status.tables
    assert table.copy is not None and status.copy is not None
    assert (table.copy.rows, table.copy.bytes, table.copy.percent) == (700, 3000, 25.0)
    assert status.copy.percent == 25.0 and status.copy.left_seconds is not None
    _print(status)
    assert "public.orders is being copied: 25.0 %, 700 rows in 3,000 bytes" in capsys.readouterr().out
    text = generate_latest(registry_of(StatusCollector(PIPELINE, lambda: status))).decode()
    assert 'icestream_table_copy_ratio{table="public.orders"} 0.25' in text
    assert 'icestream_table_copy_rows{table="public.orders"} 700.0' in text
    assert "icestream_copy_ratio 0.25" in text
    assert json.loads(json.dumps(status.as_dict()))["tables"][0]["copy"]["rows"] == 700


def test_every_group_sees_its_own_tables(state: Database, database: str, tables: Tables, tmp_path: Path) -> None:
    environ = environment_for(database, tmp_path, SLOT_NAME=PIPELINE)
    settings = load(None, environ, {"state.group": "audit"}).settings
    Groups(state, PIPELINE).register("audit")
    assert read_status(state, settings).tables == ()
    Tables(state, PIPELINE, "audit").adopt(lambda source: Target("audit", source.name))
    (table,) = read_status(state, settings).tables
    assert (table.name, table.target, table.state) == (ORDERS, "audit.orders", "pending")
    assert request_copies(state, settings, ["audit.orders"]) == [ORDERS]
    assert tables.all()[0].state is TableState.LIVE


def test_a_group_without_workers_that_staged_files_wait_for_is_told_and_can_be_forgotten(
    state: Database, settings: Settings, tables: Tables, log: LogDriver
) -> None:
    Groups(state, PIPELINE).register("audit")
    assert read_status(state, settings).stalled_groups == ()
    log.claim(staged(records=10))
    assert read_status(state, settings).stalled_groups == ("audit",)
    worker, instance = Leases(state, PIPELINE, "audit"), new_epoch()
    worker.acquire("w1", instance, 30)
    assert read_status(state, settings).stalled_groups == ()
    with pytest.raises(StateError, match="live worker"):
        forget_group(state, settings, "audit")
    worker.release("w1", instance)
    forget_group(state, settings, "audit")
    assert Groups(state, PIPELINE).names() == ["default"]


def test_only_a_group_that_is_there_and_not_captures_own_can_be_forgotten(
    state: Database, settings: Settings, tables: Tables
) -> None:
    with pytest.raises(SettingsError, match="no group 'audit'") as refused:
        forget_group(state, settings, "audit")
    assert refused.value.hint == "its groups are default"
    with pytest.raises(StateError, match="capture"):
        forget_group(state, settings, "default")


def test_metrics_survive_a_state_that_does_not_answer() -> None:
    def unreachable() -> Status:
        raise StateUnavailable("gone")

    text = generate_latest(registry_of(StatusCollector(PIPELINE, unreachable))).decode()
    assert "icestream_state_up 0.0" in text
    assert "icestream_table" not in text


@pytest.mark.parametrize("name", ["public.orders"])
def test_resync_takes_a_parked_table_back_to_pending(
    state: Database, settings: Settings, tables: Tables, log: LogDriver, name: str
) -> None:
    tables.park(ORDERS, "reason")
    assert request_copies(state, settings, [name, name]) == [ORDERS]
    (row,) = tables.all()
    assert (row.state, row.reason) == (TableState.PENDING, None)


def test_resync_of_an_unknown_table_changes_nothing(
    state: Database, settings: Settings, tables: Tables, log: LogDriver
) -> None:
    with pytest.raises(SettingsError, match=r"public\.nothing") as refused:
        request_copies(state, settings, [ORDERS, "public.nothing"])
    assert refused.value.hint == "its tables are public.orders"
    (row,) = tables.all()
    assert row.state is TableState.LIVE


def test_the_supervisor_releases_only_the_leases_of_the_process_it_reaped(state: Database) -> None:
    leases = Leases(state, PIPELINE, "default")
    leases.acquire("ours", new_epoch(), 30)
    try_release_leases(leases, os.getpid() + 1)
    assert leases.active() == ["ours"]
    try_release_leases(leases, os.getpid())
    assert leases.active() == []
