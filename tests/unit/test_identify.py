"""Which columns a relation message means: by the catalog, or by what was known before it."""

from __future__ import annotations

from collections.abc import Sequence

from icestream.capture.identify import Identifier
from icestream.model.table import Column, Relation

OID = 7
_INT, _TEXT = 23, 25


def relation(*columns: tuple[str, int] | str, type_oid: int = _TEXT) -> Relation:
    """Columns by name, with their number where it is known."""
    named = [(column, 0) if isinstance(column, str) else column for column in columns]
    return Relation(OID, "public", "t", "d", tuple(Column(name, type_oid, number=number) for name, number in named))


def numbers(
    told: Sequence[Relation], *, known: Relation | None = None, catalog: Relation | None = None
) -> list[tuple[int, ...]]:
    """Of each relation as it is told, the last one being the newest; the catalog is that after all of them."""
    identifier = Identifier(lambda oid: catalog, {OID: known} if known else {})
    found = [identifier.identify(one, is_newest=one is told[-1]) for one in told]
    return [tuple(column.number for column in one.columns) for one in found]


def test_the_catalog_numbers_what_it_says_itself() -> None:
    assert numbers([relation("a", "b")], catalog=relation(("a", 1), ("b", 4))) == [(1, 4)]


def test_a_rename_keeps_the_number() -> None:
    known, renamed = relation(("a", 1), ("b", 2)), relation(("a", 1), ("c", 2))
    assert numbers([relation("a", "b"), relation("a", "c")], known=known, catalog=renamed) == [(1, 2), (1, 2)]


def test_a_column_that_was_dropped_and_made_again_is_another_one_although_the_words_are_the_same() -> None:
    known, now = relation(("a", 1), ("b", 2)), relation(("a", 1), ("b", 3))
    assert numbers([relation("a", "b")], known=known, catalog=now) == [(1, 3)]


def test_an_older_telling_is_in_doubt_when_a_name_has_gone_to_another_column_since() -> None:
    """It may have been told before that, or after it."""
    known, now = relation(("a", 1), ("b", 2)), relation(("a", 1), ("b", 3))
    told = [relation("a", "b"), relation("a", "b")]
    assert numbers(told, known=known, catalog=now) == [(1, 0), (1, 3)]


def test_an_older_telling_is_known_from_before_when_the_catalog_has_gone_on() -> None:
    known, now = relation(("a", 1), ("b", 2)), relation(("a", 1), ("x", 2), ("y", 3))
    assert numbers([relation("a", "b")], known=known, catalog=now) == [(1, 2)]


def test_columns_that_only_came_are_found_in_a_catalog_that_has_gone_on() -> None:
    known, now = relation(("a", 1)), relation(("a", 1), ("b", 2), ("c", 3))
    assert numbers([relation("a", "b")], known=known, catalog=now) == [(1, 2)]


def test_columns_that_only_went_leave_no_doubt() -> None:
    known, now = relation(("a", 1), ("b", 2)), relation(("a", 1), ("c", 3))
    assert numbers([relation("a")], known=known, catalog=now) == [(1,)]


def test_a_column_that_is_there_before_and_now_had_its_number_in_between_whatever_its_name() -> None:
    known, now = relation(("a", 1), ("b", 2)), relation(("a", 1), ("d", 2), ("e", 3))
    assert numbers([relation("a", "c"), relation("a", "c", "e")], known=known, catalog=now) == [(1, 2), (1, 2, 3)]


def test_a_column_that_came_while_another_went_for_good_is_in_doubt_when_the_catalog_has_gone_on() -> None:
    known, now = relation(("a", 1), ("b", 2)), relation(("a", 1), ("d", 3))
    assert numbers([relation("a", "c")], known=known, catalog=now) == [(1, 0)]


def test_columns_that_exchanged_their_names_are_in_doubt_when_the_catalog_has_gone_on() -> None:
    known, now = relation(("a", 1), ("b", 2)), relation(("b", 1), ("a", 2), ("c", 3))
    assert numbers([relation("b", "a")], known=known, catalog=now) == [(0, 0)]


def test_a_table_that_is_gone_is_known_from_before() -> None:
    assert numbers([relation("a", "b")], known=relation(("a", 1), ("b", 2))) == [(1, 2)]


def test_each_telling_is_looked_up_once() -> None:
    asked: list[int] = []

    def read(oid: int) -> Relation:
        asked.append(oid)
        return relation(("a", 1))

    identifier, told = Identifier(read, {}), relation("a")
    for _ in range(3):
        identifier.identify(told, is_newest=True)
    identifier.identify(relation("a"), is_newest=True)
    assert asked == [OID, OID]


def test_facts_of_a_type_are_not_taken_for_another_type() -> None:
    domain = Column("a", 99, number=1, base_oid=_INT)
    identifier = Identifier(lambda oid: None, {OID: Relation(OID, "public", "t", "d", (domain,))})
    (found,) = identifier.identify(relation("a", type_oid=_INT), is_newest=True).columns
    assert (found.number, found.base_oid) == (1, 0)
