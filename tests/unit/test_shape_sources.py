"""Under which names rows of an older shape of the source hold the values of a table's columns."""

from __future__ import annotations

from icestream.lake.table import Field
from icestream.materialize.shape import Shape
from icestream.model.table import Column, Relation, Target

_INT, _TEXT = 23, 25
_ID = Column("id", _INT, is_key=True, number=1)
BEFORE = Relation(7, "public", "t", "d", (_ID, Column("a", _TEXT, number=2)))
AFTER = Relation(7, "public", "t", "d", (_ID, Column("b", _TEXT, number=2)))


def shape(rename_column: str, fields: list[str], numbers: dict[int, str]) -> Shape:
    found = [Field(n, name, "int" if name == "id" else "string", name == "id") for n, name in enumerate(fields, 1)]
    return Shape.of(AFTER, Target("n", "t", rename_column=rename_column)).in_table(found, numbers, "n.t")


def test_a_renamed_column_keeps_the_values_it_had() -> None:
    renamed = shape("rename", ["id", "b"], {1: "id", 2: "b"})
    assert renamed.sources(BEFORE) == [("id", None), ("a", None)]
    assert renamed.sources(AFTER) == [("id", None), ("b", None)]


def test_a_column_beside_the_old_one_has_only_values_from_after_the_rename() -> None:
    beside = shape("drop_add", ["id", "a", "b"], {1: "id", 2: "b"})
    assert beside.sources(BEFORE) == [("id", None), ("a", None), (None, None)]
    assert beside.sources(AFTER) == [("id", None), (None, None), ("b", None)]
