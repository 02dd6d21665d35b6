"""Which dead letters are on their way to Iceberg: each belongs to one move of a group, and a move is not forgotten."""

from __future__ import annotations

import pytest

from icestream.model.ids import new_epoch
from icestream.model.position import Lsn
from icestream.state.database import Database
from icestream.state.dead_letters import DeadLetter, DeadLetters
from icestream.state.letter_moves import LetterMoves, Move
from support.state import PIPELINE

EPOCH = new_epoch()
TABLES = {"lake": ["lake.orders", "lake.customers"], "other": ["other.items"]}


def letter(offset: int, table: str = "lake.orders") -> DeadLetter:
    return DeadLetter(table, EPOCH, offset, Lsn(500), "price", {"id": "5"}, "NaN", "does not fit")


def offsets(move: Move | None) -> list[int]:
    return [] if move is None else sorted(letter.offset for letter in move.letters)


@pytest.fixture
def letters(state: Database) -> DeadLetters:
    return DeadLetters(state, PIPELINE)


@pytest.fixture
def moves(state: Database) -> LetterMoves:
    return LetterMoves(state, PIPELINE, "default")


def test_a_move_stays_the_same_until_it_is_finished(letters: DeadLetters, moves: LetterMoves) -> None:
    letters.add([letter(1), letter(2)])
    first = moves.begin(TABLES)
    letters.add([letter(3)])
    assert first is not None
    assert moves.begin(TABLES) == first
    assert moves.is_open(first)
    moves.finish(first)
    assert not moves.is_open(first)
    assert offsets(first) == [1, 2]
    assert offsets(moves.begin(TABLES)) == [3]


def test_nothing_is_left_when_all_moves_are_finished(letters: DeadLetters, moves: LetterMoves) -> None:
    letters.add([letter(number) for number in range(5)])
    seen = []
    while (move := moves.begin(TABLES, most=2)) is not None:
        seen += offsets(move)
        moves.finish(move)
    assert sorted(seen) == [0, 1, 2, 3, 4]


def test_a_move_has_letters_of_one_namespace(letters: DeadLetters, moves: LetterMoves) -> None:
    letters.add([letter(1, "other.items"), letter(2, "lake.customers"), letter(3, "unknown.table")])
    first = moves.begin(TABLES)
    assert first is not None
    moves.finish(first)
    second = moves.begin(TABLES)
    assert second is not None
    moves.finish(second)
    assert [(move.namespace, offsets(move)) for move in (first, second)] == [("lake", [2]), ("other", [1])]
    assert moves.begin(TABLES) is None


def test_every_group_moves_every_letter(letters: DeadLetters, moves: LetterMoves, state: Database) -> None:
    letters.add([letter(1)])
    move = moves.begin(TABLES)
    assert move is not None
    moves.finish(move)
    assert offsets(LetterMoves(state, PIPELINE, "another").begin(TABLES)) == [1]
    assert LetterMoves(state, "another pipeline", "default").begin(TABLES) is None
