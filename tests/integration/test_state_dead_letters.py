"""Dead letters: the same letter is stored once, however often its batch is redone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icestream.model.ids import new_epoch
from icestream.model.position import Lsn
from icestream.state.database import Database
from icestream.state.dead_letters import DeadLetter, DeadLetters
from support.state import PIPELINE

LETTER = DeadLetter(
    table="public.orders",
    epoch=new_epoch(),
    offset=7,
    position=Lsn(500),
    column="price",
    key={"id": "5", "part": None},
    value="NaN {braces} %s ü",
    reason="decimal(10,2) cannot hold NaN",
)


@pytest.fixture
def letters(state: Database) -> DeadLetters:
    return DeadLetters(state, PIPELINE)


def test_a_letter_is_read_back_whole(letters: DeadLetters) -> None:
    assert letters.add([LETTER]) == 1
    (found,) = letters.newest()
    assert found.created_at is not None
    assert replace(found, created_at=None) == LETTER
    assert found.id == LETTER.id


def test_a_letter_is_stored_once(letters: DeadLetters) -> None:
    other_reason = replace(LETTER, reason="other")
    assert letters.add([LETTER, other_reason]) == 1
    assert letters.add([LETTER, replace(LETTER, offset=8)]) == 1
    assert letters.counts() == {"public.orders": 2}


def test_column_row_table_and_epoch_make_the_id() -> None:
    different = [
        LETTER,
        replace(LETTER, column=None),
        replace(LETTER, column=""),
        replace(LETTER, offset=70),
        replace(LETTER, table="public.items"),
        replace(LETTER, epoch=new_epoch()),
    ]
    assert len({letter.id for letter in different}) == len(different)


def test_many_letters_are_added_in_batches(letters: DeadLetters) -> None:
    assert letters.add(replace(LETTER, offset=offset) for offset in range(2500)) == 2500
    assert letters.counts() == {"public.orders": 2500}
    assert len(letters.newest(limit=10)) == 10
    assert letters.add([]) == 0


def test_letters_can_be_read_by_table(letters: DeadLetters) -> None:
    items = replace(LETTER, table="public.items")
    letters.add([LETTER, items])
    assert [letter.table for letter in letters.newest("public.items")] == ["public.items"]
    assert letters.newest("public.none") == []


def test_pipelines_have_their_own_letters(state: Database, letters: DeadLetters) -> None:
    letters.add([LETTER])
    assert DeadLetters(state, "other").counts() == {}
