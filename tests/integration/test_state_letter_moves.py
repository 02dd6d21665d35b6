"""Which dead letters are on their way to Iceberg: each belongs to one move of a group, and a move is not forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icestream.model.ids import new_epoch
from icestream.model.position import Lsn
from icestream.state.database import Database
from icestream.state.dead_letters import DeadLetter, DeadLetters
from icestream.state.letter_moves import LetterMoves, Move
from support.state import PIPELINE

EPOCH = new_epoch()


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
    first = moves.begin("lake", ["lake.orders"])
    letters.add([letter(3)])
    assert first is not None
    assert moves.begin("lake", ["lake.orders"]) == first
    assert moves.is_open(first)
    moves.finish(first)
    assert not moves.is_open(first)
    assert offsets(first) == [1, 2]
    assert offsets(moves.begin("lake", ["lake.orders"])) == [3]


def sizes(moves: LetterMoves, **bounds: int) -> list[int]:
    """Of all moves, until nothing is left."""
    found, seen = [], []
    while (move := moves.begin("lake", ["lake.orders"], **bounds)) is not None:
        found.append(len(move.letters))
        seen += offsets(move)
        moves.finish(move)
    assert sorted(set(seen)) == sorted(seen) == list(range(len(seen)))
    return found


def test_nothing_is_left_when_all_moves_are_finished(letters: DeadLetters, moves: LetterMoves) -> None:
    letters.add([letter(number) for number in range(5)])
    assert sizes(moves, most=2) == [2, 2, 1]


def test_a_move_is_cut_by_its_size(letters: DeadLetters, moves: LetterMoves) -> None:
    letters.add([replace(letter(number), value="ü" * 500) for number in range(5)])
    assert sizes(moves, most_bytes=2000) == [2, 2, 1]


def test_what_is_larger_than_a_move_goes_alone(letters: DeadLetters, moves: LetterMoves) -> None:
    letters.add([replace(letter(number), value="9" * 5000) for number in range(2)])
    assert sizes(moves, most_bytes=1000) == [1, 1]


def test_every_namespace_has_a_move_of_its_own(letters: DeadLetters, moves: LetterMoves) -> None:
    letters.add([letter(1, "other.items"), letter(2, "lake.customers"), letter(3, "unknown.table")])
    first = moves.begin("lake", ["lake.orders", "lake.customers"])
    second = moves.begin("other", ["other.items"])
    assert first is not None and second is not None
    assert [(move.namespace, offsets(move)) for move in (first, second)] == [("lake", [2]), ("other", [1])]
    assert moves.unfinished() == ["lake", "other"]
    moves.finish(second)
    assert moves.begin("other", ["other.items"]) is None
    assert moves.unfinished() == ["lake"]
    assert moves.is_open(first) and not moves.is_open(second)


def test_a_move_whose_tables_are_gone_is_still_finished(letters: DeadLetters, moves: LetterMoves) -> None:
    letters.add([letter(1)])
    first = moves.begin("lake", ["lake.orders"])
    assert moves.begin("lake", []) == first


def test_every_group_moves_every_letter(letters: DeadLetters, moves: LetterMoves, state: Database) -> None:
    letters.add([letter(1)])
    move = moves.begin("lake", ["lake.orders"])
    assert move is not None
    moves.finish(move)
    assert offsets(LetterMoves(state, PIPELINE, "another").begin("lake", ["lake.orders"])) == [1]
    assert LetterMoves(state, "another pipeline", "default").begin("lake", ["lake.orders"]) is None
