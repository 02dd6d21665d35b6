"""The quick copy of the tables' cursors follows the tables, and no late note takes it back."""

from __future__ import annotations

import pytest

from icestream.model.cursor import Cursor
from icestream.model.ids import new_epoch
from icestream.model.position import Lsn
from icestream.state.cursors import Cursors
from icestream.state.database import Database
from icestream.state.groups import Groups
from support.state import PIPELINE

EPOCH = new_epoch()
TABLE = "public.orders"


@pytest.fixture
def cursors(state: Database) -> Cursors:
    return Cursors(state, PIPELINE, "default")


def test_a_table_without_cursor_has_none(cursors: Cursors) -> None:
    assert cursors.load(TABLE) is None
    assert cursors.all() == {}


def test_what_is_recorded_is_read_back(cursors: Cursors) -> None:
    cursor = Cursor(EPOCH, 10, Lsn(500), copied=False)
    stored = cursors.record(TABLE, cursor, snapshot_id=2**62, rows=10, lag_ms=1234)
    assert stored == cursors.load(TABLE) == cursors.all()[TABLE]
    assert (stored.cursor, stored.snapshot_id, stored.rows_applied, stored.lag_ms) == (cursor, 2**62, 10, 1234)


def test_a_backlog_of_months_is_recorded_too(cursors: Cursors) -> None:
    stored = cursors.record(TABLE, Cursor(EPOCH, 10, 500), snapshot_id=1, rows=10, lag_ms=60 * 24 * 3600 * 1000)
    assert stored.lag_ms == 2**31 - 1


def test_rows_add_up(cursors: Cursors) -> None:
    cursors.record(TABLE, Cursor(EPOCH, 10, 500), snapshot_id=1, rows=10)
    assert cursors.record(TABLE, Cursor(EPOCH, 15, 600), snapshot_id=2, rows=5).rows_applied == 15


def test_the_same_cursor_again_counts_its_rows_once(cursors: Cursors) -> None:
    for _ in range(2):
        stored = cursors.record(TABLE, Cursor(EPOCH, 10, 500), snapshot_id=1, rows=10)
    assert stored.rows_applied == 10


def test_a_late_note_of_an_older_cursor_changes_nothing(cursors: Cursors) -> None:
    newest = cursors.record(TABLE, Cursor(EPOCH, 20, 600), snapshot_id=2, rows=20)
    assert cursors.record(TABLE, Cursor(EPOCH, 10, 500), snapshot_id=1, rows=10) == newest


def test_a_new_copy_may_begin_at_a_smaller_offset(cursors: Cursors) -> None:
    cursors.record(TABLE, Cursor(EPOCH, 20, 600), snapshot_id=2, rows=20)
    copy = Cursor(EPOCH, 0, 700)
    assert cursors.record(TABLE, copy, snapshot_id=3, rows=100).cursor == copy
    assert cursors.record(TABLE, Cursor(EPOCH, 20, 650), snapshot_id=2, rows=20).cursor == copy


def test_publishing_the_copy_replaces_the_cursor_of_the_empty_table(cursors: Cursors) -> None:
    cursors.record(TABLE, Cursor(EPOCH, 0, 500, copied=False), snapshot_id=None, rows=0)
    assert cursors.record(TABLE, Cursor(EPOCH, 0, 500), snapshot_id=1, rows=7).rows_applied == 7


def test_another_epoch_replaces_the_cursor(cursors: Cursors) -> None:
    cursors.record(TABLE, Cursor(EPOCH, 20, 600), snapshot_id=2, rows=20)
    fresh = Cursor(new_epoch(), 0, 100)
    assert cursors.record(TABLE, fresh, snapshot_id=3, rows=0).cursor == fresh


def test_groups_and_pipelines_have_their_own_cursors(state: Database, cursors: Cursors) -> None:
    cursors.record(TABLE, Cursor(EPOCH, 20, 600), snapshot_id=2, rows=20)
    assert Cursors(state, PIPELINE, "other").load(TABLE) is None
    assert Cursors(state, "other", "default").load(TABLE) is None


def test_groups_are_registered_once_and_removed_with_their_cursors(state: Database, cursors: Cursors) -> None:
    groups = Groups(state, PIPELINE)
    for name in ("default", "audit", "default"):
        groups.register(name)
    cursors.record(TABLE, Cursor(EPOCH, 20, 600), snapshot_id=2, rows=20)
    assert groups.names() == ["audit", "default"]

    groups.remove("default")
    assert groups.names() == ["audit"]
    assert cursors.load(TABLE) is None
