"""The fence: whoever comes second, however late, is refused; nothing doubles."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.errors import PublishRefused
from icestream.lake.history import cursor_property, cursor_summary, find_cursor, holds_commit
from icestream.lake.publish import Outcome, publish
from icestream.lake.session import Lake
from icestream.lake.stage import Stage, Staged
from icestream.model.cursor import Cursor
from icestream.model.ids import new_id
from icestream.model.table import Column, Relation
from support.applying import EPOCH, OWNER, AppliedTable

RELATION = Relation(1, "public", "t", "d", (Column("id", 23, -1, True), Column("v", 25)))


@pytest.fixture
def table(lake: Lake, tmp_path: Path, namespace: str) -> AppliedTable:
    return AppliedTable(lake, tmp_path, namespace, RELATION)


def stage_rows(lake: Lake, table: AppliedTable, first: int, last: int, *, offset: int) -> Staged:
    """A worker with its own view of the table stages the rows [first, last)."""
    own = lake.catalog.load(table.target.namespace, "t")
    assert own is not None
    session = lake.spark.newSession()
    stage = Stage.begin(own, session, owner=OWNER, base=own.head(), commit_id=new_id())
    rows = session.range(first, last).selectExpr("cast(id as int) as id", "'x' as v")
    stage.append(rows, "1/1", cursor_summary(OWNER, Cursor(EPOCH, offset, offset)))
    return stage.finish()


def publish_as(lake: Lake, table: AppliedTable, staged: Staged, *, offset: int) -> Outcome:
    own = lake.catalog.load(table.target.namespace, "t")
    assert own is not None
    return publish(own, staged, cursor_property(Cursor(EPOCH, offset, offset), staged.snapshots[-1])).outcome


def ids(table: AppliedTable) -> list[object]:
    return [row[0] for row in table.rows()]


@pytest.mark.parametrize("empty", [True, False])
def test_a_late_worker_with_the_same_batch_is_refused(lake: Lake, table: AppliedTable, empty: bool) -> None:
    if not empty:
        publish_as(lake, table, stage_rows(lake, table, 100, 101, offset=1), offset=1)
    late = stage_rows(lake, table, 0, 5, offset=6)
    successor = stage_rows(lake, table, 0, 5, offset=6)
    assert publish_as(lake, table, successor, offset=6) is Outcome.COMMITTED
    assert publish_as(lake, table, late, offset=6) is Outcome.REJECTED
    assert ids(table) == [0, 1, 2, 3, 4] + ([] if empty else [100])


def test_a_late_worker_whose_batch_overlaps_is_refused(lake: Lake, table: AppliedTable) -> None:
    late = stage_rows(lake, table, 0, 8, offset=8)
    assert publish_as(lake, table, stage_rows(lake, table, 0, 5, offset=5), offset=5) is Outcome.COMMITTED
    assert publish_as(lake, table, late, offset=8) is Outcome.REJECTED
    assert ids(table) == [0, 1, 2, 3, 4]
    assert table.cursor.offset == 5


def test_a_worker_whose_branch_was_dropped_is_refused_even_if_main_has_not_moved(
    lake: Lake, table: AppliedTable
) -> None:
    late = stage_rows(lake, table, 0, 3, offset=3)
    table.table.refresh()
    table.table.java.manageSnapshots().removeBranch(late.branch).commit()
    assert publish_as(lake, table, late, offset=3) is Outcome.REJECTED
    assert ids(table) == []


def test_beginning_a_stage_drops_the_branch_of_an_earlier_attempt(lake: Lake, table: AppliedTable) -> None:
    abandoned = stage_rows(lake, table, 0, 3, offset=3)
    successor = stage_rows(lake, table, 0, 3, offset=3)
    table.table.refresh()
    assert table.table.branches() == [successor.branch]
    assert publish_as(lake, table, abandoned, offset=3) is Outcome.REJECTED
    assert publish_as(lake, table, successor, offset=3) is Outcome.COMMITTED
    assert ids(table) == [0, 1, 2]


def test_a_branch_that_somebody_else_wrote_to_is_refused(lake: Lake, table: AppliedTable) -> None:
    staged = stage_rows(lake, table, 0, 3, offset=3)
    lake.spark.newSession().sql(f"INSERT INTO {table.table.sql_name(staged.branch)} VALUES (99, 'foreign')")
    assert publish_as(lake, table, staged, offset=3) is Outcome.REJECTED
    assert ids(table) == []


def test_writing_on_after_the_branch_was_dropped_is_noticed(lake: Lake, table: AppliedTable) -> None:
    own = lake.catalog.load(table.target.namespace, "t")
    assert own is not None
    session = lake.spark.newSession()
    stage = Stage.begin(own, session, owner=OWNER, base=own.head(), commit_id=new_id())
    rows = session.range(0, 2).selectExpr("cast(id as int) as id", "'x' as v")
    stage.append(rows, "1/2", {})
    table.table.refresh()
    table.table.java.manageSnapshots().removeBranch(stage.branch).commit()
    with pytest.raises(PublishRefused):
        stage.mark("2/2", cursor_summary(OWNER, Cursor(EPOCH, 2, 2)))
    assert ids(table) == []


def test_publishing_twice_is_one_commit(lake: Lake, table: AppliedTable) -> None:
    """The catalog committed and the answer was lost: asking again finds the commit."""
    staged = stage_rows(lake, table, 0, 3, offset=3)
    assert publish_as(lake, table, staged, offset=3) is Outcome.COMMITTED
    assert publish_as(lake, table, staged, offset=3) is Outcome.COMMITTED
    assert ids(table) == [0, 1, 2]
    table.table.refresh()
    assert holds_commit(table.table, staged.commit_id, since=staged.base)


def test_a_foreign_change_of_properties_does_not_refuse_a_publish(lake: Lake, table: AppliedTable) -> None:
    staged = stage_rows(lake, table, 0, 3, offset=3)
    table.table.refresh()
    table.table.java.updateProperties().set("somebody", "was here").commit()
    assert publish_as(lake, table, staged, offset=3) is Outcome.COMMITTED
    assert ids(table) == [0, 1, 2]


def test_the_cursor_survives_foreign_commits_and_expired_snapshots(lake: Lake, table: AppliedTable) -> None:
    publish_as(lake, table, stage_rows(lake, table, 0, 3, offset=3), offset=3)
    lake.spark.newSession().sql(f"INSERT INTO {table.table.sql_name()} VALUES (99, 'foreign')")
    assert table.cursor.offset == 3
    name = f"{table.target.namespace}.t"
    everything = f"table => '{name}', retain_last => 1, older_than => TIMESTAMP '2999-01-01'"
    lake.spark.newSession().sql(f"CALL icestream.system.expire_snapshots({everything})")
    table.table.refresh()
    assert len(list(table.table.ancestors(table.table.head()))) == 1
    assert find_cursor(table.table, OWNER) == Cursor(EPOCH, 3, 3)
