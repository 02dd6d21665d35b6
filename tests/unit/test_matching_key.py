"""By which columns rows are matched."""

from __future__ import annotations

import msgspec
import pytest

from icestream.model.table import Column, Relation, Target, matching_key

RELATION = Relation(1, "public", "t", "d", (Column("id", 23, is_key=True), Column("code", 25), Column("v", 25)))
FULL = msgspec.structs.replace(RELATION, identity="f")


def test_it_is_the_replica_identity() -> None:
    assert matching_key(RELATION, Target("n", "t", primary_key=("code",))) == {"id"}


@pytest.mark.parametrize(
    ("named", "found"),
    [(("code",), {"code"}), (("code", "v"), {"code", "v"}), (("gone",), set()), (("code", "gone"), set()), ((), set())],
)
def test_under_a_full_identity_the_settings_name_it_as_long_as_its_columns_are_there(
    named: tuple[str, ...], found: set[str]
) -> None:
    assert matching_key(FULL, Target("n", "t", primary_key=named)) == found
