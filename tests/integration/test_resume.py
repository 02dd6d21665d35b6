"""A parked table goes on from where it was, or it is said that only a new copy helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.config import Settings
from icestream.errors import StateError
from icestream.model.cursor import Cursor
from icestream.model.position import Lsn
from icestream.model.table import TableName, TableState, Target
from icestream.runtime.resume import Resumed, resume_tables
from icestream.state.cursors import Cursors
from icestream.state.database import Database
from icestream.state.retention import Retention
from icestream.state.tables import TableDefinition, Tables
from support.settings import settings_for
from support.state import PIPELINE, LogDriver, staged

TABLE = "public.orders"
DEFINITION = TableDefinition(Target("public", "orders"), TableName("public", "orders"), 16400)


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return settings_for(database, tmp_path, SLOT_NAME=PIPELINE)


@pytest.fixture
def tables(state: Database, log: LogDriver) -> Tables:
    """A live table that has applied the first of three claims of ten changes."""
    tables = Tables(state, PIPELINE, "default")
    tables.sync([DEFINITION])
    tables.complete_copy(TABLE, position=Lsn(1000), rows=0)
    for _ in range(3):
        log.claim(staged())
    Cursors(state, PIPELINE, "default").record(TABLE, Cursor(log.epoch, 10, 1100), snapshot_id=1, rows=10)
    return tables


def park_as_worker(tables: Tables) -> None:
    assert tables.park(TABLE, "no right", seen=tables.get(TABLE), is_resumable=True)


def state_of(tables: Tables) -> TableState:
    (row,) = tables.all()
    return row.state


def test_a_table_goes_on_with_what_waits_for_it(state: Database, settings: Settings, tables: Tables) -> None:
    park_as_worker(tables)
    Retention(state, PIPELINE).give_up_passed(keep_s=0, parked_keep_s=3600)
    assert resume_tables(state, settings, ["public.orders"]) == [Resumed(TABLE, 20)]
    (row,) = tables.all()
    assert (row.state, row.reason, row.hint, row.failures) == (TableState.LIVE, None, None, 0)


def refusal(state: Database, settings: Settings, tables: Tables) -> str:
    with pytest.raises(StateError) as caught:
        resume_tables(state, settings, [TABLE])
    assert caught.value.hint == f"run `icestream resync {TABLE}`"
    assert state_of(tables) is TableState.PARKED
    return str(caught.value)


def test_a_log_that_was_given_up_needs_a_new_copy(state: Database, settings: Settings, tables: Tables) -> None:
    park_as_worker(tables)
    Retention(state, PIPELINE).give_up_passed(keep_s=0, parked_keep_s=0)
    assert "its log was given up to 30" in refusal(state, settings, tables)


def test_missing_changes_need_a_new_copy(state: Database, settings: Settings, tables: Tables) -> None:
    tables.park(TABLE, "the slot is gone")
    assert "the slot is gone" in refusal(state, settings, tables)


def test_changes_that_went_missing_while_it_was_parked_need_a_new_copy(
    state: Database, settings: Settings, tables: Tables
) -> None:
    park_as_worker(tables)
    assert tables.give_up_log(TABLE, "not published")
    assert "no right; not published" in refusal(state, settings, tables)


def test_a_table_that_was_made_anew_in_the_source_needs_a_new_copy(
    state: Database, settings: Settings, tables: Tables
) -> None:
    park_as_worker(tables)
    tables.sync([TableDefinition(DEFINITION.target, DEFINITION.source, 16401)])
    assert "dropped and created again" in refusal(state, settings, tables)


def test_a_table_that_was_out_of_the_settings_cannot_be_resumed(
    state: Database, settings: Settings, tables: Tables
) -> None:
    park_as_worker(tables)
    tables.sync([])
    tables.sync([DEFINITION])
    assert state_of(tables) is TableState.PENDING
    assert not tables.resume(TABLE)


def test_a_log_that_began_anew_needs_a_new_copy(
    state: Database, settings: Settings, tables: Tables, log: LogDriver
) -> None:
    park_as_worker(tables)
    log.begin_epoch(Lsn(9000))
    assert "began anew" in refusal(state, settings, tables)


def test_a_copy_that_was_never_completed_cannot_be_resumed(state: Database, settings: Settings, tables: Tables) -> None:
    tables.request_copy(TABLE)
    park_as_worker(tables)
    assert "changes are missing" in refusal(state, settings, tables)


def test_a_table_that_is_not_parked_is_left_as_it_is(state: Database, settings: Settings, tables: Tables) -> None:
    with pytest.raises(StateError, match="is live, not parked"):
        resume_tables(state, settings, [TABLE])
    assert state_of(tables) is TableState.LIVE
