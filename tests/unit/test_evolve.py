"""What has to change in a table when its source has changed: a plan, from nothing but descriptions."""

from __future__ import annotations

import pytest

from icestream.errors import CopyNeeded
from icestream.lake.evolution import AddedColumn
from icestream.lake.table import Field
from icestream.materialize.evolve import (
    Evolution,
    columns_of,
    columns_property,
    plan_evolution,
    plan_replacement,
    stored_columns,
)
from icestream.model.table import Column, Relation, Target, WriteMode
from icestream.model.types import Kind, TargetType

_INT, _BIGINT, _TEXT, _REAL, _DOUBLE = 23, 20, 25, 700, 701
_ID = Column("id", _INT, is_key=True, number=1)
_TABLE = {1: "id", 2: "a", 3: "b"}
_FIELDS = [Field(1, "id", "int", True), Field(2, "a", "string", False), Field(3, "b", "int", False)]


def planned(
    *columns: Column, fields: list[Field] = _FIELDS, stored: dict[int, str] = _TABLE, **target: str
) -> Evolution:
    relation = Relation(7, "public", "t", "d", (_ID, *columns))
    return plan_evolution(fields, stored, relation, Target("n", "t", **target))  # type: ignore[arg-type]


def column(name: str, number: int, type_oid: int = _TEXT, **facts: object) -> Column:
    return Column(name, type_oid, number=number, **facts)  # type: ignore[arg-type]


def test_an_equal_shape_needs_nothing() -> None:
    change = planned(column("a", 2), column("b", 3, _INT)).change
    assert (change.renamed, change.dropped, change.added, change.widened) == ({}, frozenset(), (), {})


def test_a_column_is_renamed_by_its_number() -> None:
    evolution = planned(column("x", 2), column("b", 3, _INT))
    assert evolution.change.renamed == {"a": "x"}
    assert evolution.columns == {1: "id", 2: "x", 3: "b"}


def test_columns_may_exchange_their_names() -> None:
    fields = [*_FIELDS[:2], Field(3, "b", "string", False)]
    assert planned(column("b", 2), column("a", 3), fields=fields).change.renamed == {"a": "b", "b": "a"}


def test_a_rename_may_be_another_column_beside_the_old_one() -> None:
    evolution = planned(column("x", 2), column("b", 3, _INT), rename_column="drop_add")
    assert evolution.change.renamed == {}
    assert evolution.change.added == (AddedColumn("x", TargetType(Kind.STRING)),)
    assert evolution.columns[2] == "x"


def test_a_column_that_is_gone_is_kept_and_remembered() -> None:
    evolution = planned(column("a", 2))
    assert evolution.change.dropped == frozenset()
    assert evolution.columns == {1: "id", 2: "a", 3: "b"}


def test_a_column_that_is_gone_may_be_dropped() -> None:
    evolution = planned(column("a", 2), drop_column="drop")
    assert evolution.change.dropped == {"b"}
    assert evolution.columns == {1: "id", 2: "a"}


def test_a_column_that_came_back_takes_its_name_from_the_one_that_was_dropped() -> None:
    evolution = planned(column("b", 3, _INT), column("a", 9))
    assert evolution.change.renamed == {"a": "a_dropped_1"}
    assert [added.name for added in evolution.change.added] == ["a"]
    assert evolution.columns == {1: "id", 2: "a_dropped_1", 3: "b", 9: "a"}


def test_a_constant_default_is_what_old_rows_get() -> None:
    rest = (column("a", 2), column("b", 3, _INT))
    (added,) = planned(*rest, column("c", 4, _INT, missing="5")).change.added
    assert added == AddedColumn("c", TargetType(Kind.INT), "5")
    (without,) = planned(*rest, column("c", 4, _INT, missing="5"), add_column_default="null").change.added
    assert without.default is None


@pytest.mark.parametrize(
    ("added", "format_version", "reason"),
    [
        (column("c", 4, is_filled=True), 3, "only a copy can tell"),
        (column("c", 4, missing="x"), 2, "format version 2"),
    ],
    ids=["values nobody knows", "a format without defaults"],
)
def test_values_that_old_rows_can_get_only_from_the_source_need_a_copy(
    added: Column, format_version: int, reason: str
) -> None:
    with pytest.raises(CopyNeeded, match=reason):
        planned(column("a", 2), column("b", 3, _INT), added, format_version=format_version)  # type: ignore[arg-type]


def test_numbers_get_wider_in_place() -> None:
    assert planned(column("a", 2), column("b", 3, _BIGINT)).change.widened == {"b": TargetType(Kind.LONG)}


@pytest.mark.parametrize("type_oid", [_TEXT, _REAL])
def test_a_type_that_iceberg_cannot_make_of_another_needs_a_copy(type_oid: int) -> None:
    with pytest.raises(CopyNeeded, match="column 'b' became"):
        planned(column("a", 2), column("b", 3, type_oid))


def test_a_table_without_a_memory_is_known_by_its_names() -> None:
    evolution = planned(column("a", 2), column("b", 3, _INT), column("c", 4), stored={})
    assert [added.name for added in evolution.change.added] == ["c"]
    assert evolution.columns == {1: "id", 2: "a", 3: "b", 4: "c"}


def test_a_replacement_has_the_columns_of_the_relation_and_no_others() -> None:
    columns = (_ID, column("b", 3, _TEXT), column("f", 4, _DOUBLE))
    change = plan_replacement(_FIELDS, Relation(7, "public", "t", "d", columns), Target("n", "t"))
    assert change.dropped == {"a", "b"}
    assert [added.name for added in change.added] == ["b", "f"]
    assert change.keys == ("id",)


def test_a_changelog_keeps_the_columns_of_its_history() -> None:
    columns = (_ID, column("b", 4), column("f", 5, _DOUBLE))
    target = Target("n", "t", write_mode=WriteMode.APPEND)
    fields = [Field(1, "id", "int", False), *_FIELDS[1:]]
    change = plan_replacement(fields, Relation(7, "public", "t", "d", columns), target)
    assert (change.keys, change.dropped, change.renamed) == ((), frozenset(), {"b": "b_dropped_1"})
    assert [added.name for added in change.added] == ["b", "f"]


def test_the_memory_of_a_table_is_a_property() -> None:
    relation = Relation(7, "public", "t", "d", (_ID, column('o"dd', 12)))
    assert stored_columns(columns_property(columns_of(relation))) == {1: "id", 12: 'o"dd'}
    assert stored_columns({}) == {}
