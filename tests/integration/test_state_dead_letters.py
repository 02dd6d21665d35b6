"""Dead letters: the same letter is stored once, however often its batch is redone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icestream.model.ids import new_epoch
from icestream.model.position import Lsn
from icestream.state.database import Database
from icestream.state.dead_letters import DeadLetter, DeadLetters, batches
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
    assert replace(found, created_at=None, stored_id=None) == LETTER
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


def test_position_place_key_and_column_make_the_id_of_a_copied_row() -> None:
    copied = replace(LETTER, offset=-1, place="16400 (0,1)")
    different = [
        copied,
        replace(copied, place="16400 (0,2)"),
        replace(copied, place="16401 (0,1)"),
        replace(copied, position=Lsn(501)),
        replace(copied, key={}),
        replace(copied, column="day"),
    ]
    assert len({letter.id for letter in different}) == len(different)
    assert copied.id == replace(copied, value="other", reason="other").id


def test_the_id_of_a_copied_row_is_the_one_it_was_stored_under(letters: DeadLetters) -> None:
    copied = replace(LETTER, offset=-1, place="16400 (0,1)")
    letters.add([copied])
    assert [letter.id for letter in letters.newest()] == [copied.id]


def test_what_is_too_large_is_cut_and_its_reason_says_so(letters: DeadLetters) -> None:
    """Together these values are more than a jsonb can hold."""
    huge = "9" * (90 * 1024**2)
    assert letters.add(replace(LETTER, offset=offset, value=huge) for offset in range(3)) == 3
    found = letters.newest()
    assert {len(letter.value or "") for letter in found} == {1024**2}
    assert {letter.reason for letter in found} == {
        f"{LETTER.reason}; only the first 1,048,576 characters of the value are kept"
    }
    assert {letter.id for letter in found} == {replace(LETTER, offset=offset).id for offset in range(3)}


def test_a_key_that_is_too_large_is_cut_and_its_reason_says_so(letters: DeadLetters) -> None:
    letters.add([replace(LETTER, key={"id": "ü" * 100_000, "part": None, "more": "x"})])
    (found,) = letters.newest()
    assert found.key == {"id": "ü" * 65_536, "part": None, "more": "x"}
    assert found.reason == f"{LETTER.reason}; only the first 65,536 characters of each part of the key are kept"


def test_a_batch_is_cut_by_its_size() -> None:
    large = [replace(LETTER, offset=offset, value="9" * 1024**2) for offset in range(20)]
    sizes = [len(batch) for batch in batches(large)]
    assert sum(sizes) == 20
    assert max(sizes) <= 9


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
