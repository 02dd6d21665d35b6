"""Changes of a table's columns and layout are made to the table that was looked at, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.errors import PublishRefused
from icestream.lake.commit import Commit
from icestream.lake.evolution import AddedColumn, SchemaChange, evolve
from icestream.lake.history import Owner
from icestream.lake.layout import Layout, settle_layout
from icestream.lake.session import Lake
from icestream.lake.stage import Stage
from icestream.lake.table import IcebergTable
from icestream.model.ids import new_id
from icestream.model.table import Column, Relation
from icestream.model.types import STRING
from support.applying import OWNER, AppliedTable

RELATION = Relation(1, "public", "t", "d", (Column("id", 23, -1, True), Column("a", 25), Column("b", 25)))
SWAP = SchemaChange(keys=("id",), renamed={"a": "b", "b": "a"})


@pytest.fixture
def table(lake: Lake, tmp_path: Path, namespace: str) -> AppliedTable:
    return AppliedTable(lake, tmp_path, namespace, RELATION)


def view_of(lake: Lake, table: AppliedTable) -> IcebergTable:
    """What one worker has seen of the table."""
    own = lake.catalog.load(table.target.namespace, "t")
    assert own is not None
    return own


def names(table: IcebergTable) -> list[str]:
    return [field.name for field in table.fields()]


def test_a_late_worker_does_not_swap_columns_back(lake: Lake, table: AppliedTable) -> None:
    late, successor = view_of(lake, table), view_of(lake, table)
    evolve(successor, SWAP, {"icestream.columns": "new"})
    with pytest.raises(PublishRefused):
        evolve(late, SWAP, {"icestream.columns": "old"})
    found = view_of(lake, table)
    assert names(found) == ["id", "b", "a"]
    assert found.properties()["icestream.columns"] == "new"


def test_a_late_worker_does_not_add_a_column_after_a_publish(lake: Lake, table: AppliedTable) -> None:
    late = view_of(lake, table)
    with lake.session() as session:
        commit = Commit(view_of(lake, table), session, OWNER, None)
        commit.make(lambda stage: stage.mark("1/1", {}), lambda _: {})
    with pytest.raises(PublishRefused):
        evolve(late, SchemaChange(keys=("id",), added=(AddedColumn("c", STRING),)), {})
    assert names(view_of(lake, table)) == ["id", "a", "b"]


def test_a_late_worker_does_not_lay_the_table_out(lake: Lake, table: AppliedTable) -> None:
    late, successor = view_of(lake, table), view_of(lake, table)
    assert settle_layout(successor, Layout(partition=("a",)))
    with pytest.raises(PublishRefused):
        settle_layout(late, Layout(partition=("b",)))
    assert [field.name() for field in view_of(lake, table).java.spec().fields()] == ["a"]


def test_an_owner_clears_away_only_its_own_branches(lake: Lake, table: AppliedTable) -> None:
    with lake.session() as session:
        other = Stage.begin(table.table, session, owner=Owner("other", "group"), base=None, commit_id=new_id())
        left_over = Stage.begin(table.table, session, owner=OWNER, base=None, commit_id=new_id())
        newest = Stage.begin(table.table, session, owner=OWNER, base=None, commit_id=new_id())
    branches = set(view_of(lake, table).branches())
    assert {other.branch, newest.branch} <= branches
    assert left_over.branch not in branches


def test_sessions_are_lent_again(lake: Lake) -> None:
    with lake.session() as first, lake.session() as second:
        assert first is not second
    with lake.session() as third:
        assert third in (first, second)
