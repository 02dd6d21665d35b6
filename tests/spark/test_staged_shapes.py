"""Rows staged before a change of the source table are read under the shape they were written with."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.lake.session import Lake
from icestream.materialize.decode import decode, read_staged
from icestream.materialize.shape import Shape
from icestream.model.table import Column, Relation, Target
from support.staging import Change, stage

_INT4, _FLOAT4, _FLOAT8 = 23, 700, 701


def relation(type_oid: int) -> Relation:
    return Relation(1, "public", "t", "d", (Column("id", _INT4, -1, True, 1), Column("f", type_oid, number=2)))


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.1", 0.10000000149011612), ("16777216", 16777216.0), ("-Infinity", float("-inf")), (None, None)],
)
def test_a_float_that_was_made_a_double_keeps_what_it_was(
    lake: Lake, tmp_path: Path, text: str | None, value: float | None
) -> None:
    before, shape = relation(_FLOAT4), Shape.of(relation(_FLOAT8), Target("n", "t"))
    entry = stage(tmp_path, before, [Change("I", new={"id": "1", "f": text})], start=0)
    with lake.session() as session:
        changes = decode(read_staged(session, str(tmp_path), [entry], before, shape), shape, after=0)
        assert [row[0] for row in changes.select("row.f").collect()] == [value]


def test_a_double_is_what_it_says(lake: Lake, tmp_path: Path) -> None:
    now = relation(_FLOAT8)
    shape = Shape.of(now, Target("n", "t"))
    entry = stage(tmp_path, now, [Change("I", new={"id": "1", "f": "0.1"})], start=0)
    with lake.session() as session:
        changes = decode(read_staged(session, str(tmp_path), [entry], now, shape), shape, after=0)
        assert [row[0] for row in changes.select("row.f").collect()] == [0.1]
