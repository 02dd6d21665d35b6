"""A dead letter goes from the state when it is in Iceberg for every group, and can't come again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from icestream.model.copying import CopyRange
from icestream.model.cursor import Cursor
from icestream.model.position import Lsn
from icestream.model.table import TableName, Target
from icestream.state.copy_progress import CopyProgress
from icestream.state.cursors import Cursors
from icestream.state.database import Database
from icestream.state.dead_letters import DeadLetter, DeadLetters
from icestream.state.groups import Groups
from icestream.state.letter_moves import LetterMoves
from icestream.state.retention import Retention
from icestream.state.tables import TableDefinition, Tables
from support.state import PIPELINE, LogDriver, staged

TABLE = "public.orders"
DEFINITION = TableDefinition(Target("public", "orders"), TableName("public", "orders"), 16400)


class Bench:
    """A table that is live in the group `default`."""

    def __init__(self, state: Database, log: LogDriver) -> None:
        self.state = state
        self.log = log
        self.tables = Tables(state, PIPELINE)
        self.tables.sync([DEFINITION])
        self.tables.complete_copy(TABLE, position=Lsn(1000), rows=0)
        self.letters = DeadLetters(state, PIPELINE)
        self.groups = Groups(state, PIPELINE)
        self.retention = Retention(state, PIPELINE)

    def letter(self, offset: int, position: int = 1100) -> DeadLetter:
        return DeadLetter(TABLE, self.log.epoch, offset, Lsn(position), "price", {"id": "5"}, "NaN", "does not fit")

    def join(self, group: str) -> None:
        self.groups.register(group)
        Tables(self.state, PIPELINE, group).adopt(lambda source: Target(group, source.name))

    def move(self, group: str = "default") -> None:
        moves = LetterMoves(self.state, PIPELINE, group)
        while (move := moves.begin("public", [TABLE])) is not None:
            moves.finish(move)

    def pass_by(self, offset: int, group: str = "default") -> None:
        """The group has applied everything before that offset, and the files that nobody needs any more go."""
        cursor = Cursor(self.log.epoch, offset, int(self.log.position))
        Cursors(self.state, PIPELINE, group).record(TABLE, cursor, snapshot_id=1, rows=0)
        self.retention.give_up_passed(keep_s=0)

    def kept(self) -> list[int]:
        self.retention.forget_letters()
        return sorted(letter.offset for letter in self.letters.newest())


@pytest.fixture
def bench(state: Database, log: LogDriver) -> Bench:
    return Bench(state, log)


def rows(bench: Bench) -> int:
    return len(bench.state.fetch("SELECT FROM {schema}.letter_move"))


def test_a_moved_letter_goes_and_is_still_counted(bench: Bench) -> None:
    for _ in range(2):
        bench.letters.add([bench.letter(1), bench.letter(2)])
        bench.move()
        assert bench.kept() == []
        assert (bench.letters.counts(), rows(bench)) == ({TABLE: 2}, 0)
    bench.letters.add([bench.letter(3)])
    assert bench.kept() == [3]
    assert bench.letters.counts() == {TABLE: 3}


def test_a_letter_that_is_on_its_way_stays(bench: Bench) -> None:
    bench.letters.add([bench.letter(1)])
    moves = LetterMoves(bench.state, PIPELINE, "default")
    move = moves.begin("public", [TABLE])
    assert move is not None
    assert bench.kept() == [1]
    moves.finish(move)
    assert bench.kept() == []


def test_the_slowest_group_decides(bench: Bench) -> None:
    bench.letters.add([bench.letter(1)])
    bench.join("audit")
    bench.move()
    assert bench.kept() == [1]
    bench.groups.remove("audit")
    assert bench.kept() == []


def test_a_group_that_does_not_want_the_table_does_not_hold_its_letters(bench: Bench) -> None:
    bench.groups.register("audit")
    Tables(bench.state, PIPELINE, "audit").adopt(lambda source: None)
    bench.letters.add([bench.letter(1)])
    assert bench.kept() == [1]
    bench.move()
    assert bench.kept() == []


def test_a_letter_that_nobody_has_moved_stays(bench: Bench) -> None:
    bench.letters.add([bench.letter(1)])
    bench.tables.sync([])
    assert bench.kept() == [1]


def test_a_letter_stays_as_long_as_its_row_is_in_the_log(bench: Bench) -> None:
    """Until then its batch may be made again, and with it the letter."""
    bench.log.claim(staged(records=10))
    bench.log.claim(staged(records=10))
    bench.letters.add([bench.letter(9), bench.letter(10)])
    bench.move()
    assert bench.kept() == [9, 10]
    bench.pass_by(10)
    assert bench.kept() == [10]
    bench.log.begin_epoch(bench.log.position)
    bench.state.execute("DELETE FROM {schema}.log_index")
    assert bench.kept() == []


def test_a_letter_that_comes_again_late_is_not_noted_twice(bench: Bench) -> None:
    bench.letters.add([bench.letter(4), bench.letter(6)])
    bench.move()
    assert bench.kept() == []
    assert bench.letters.add([bench.letter(4), bench.letter(5), bench.letter(6), bench.letter(7)]) == 1
    other_epoch = replace(bench.letter(4), epoch="00000000-0000-0000-0000-000000000001")
    assert bench.letters.add([other_epoch, replace(bench.letter(4), table="public.items")]) == 2


def test_a_letter_of_a_copy_that_comes_again_late_is_not_noted_twice(bench: Bench) -> None:
    bench.letters.add([bench.letter(-1, 5000)])
    bench.move()
    assert bench.kept() == []
    assert bench.letters.add([bench.letter(-1, 5000), bench.letter(-1, 4000)]) == 0
    assert bench.letters.add([bench.letter(-1, 5001), bench.letter(0)]) == 2


def offered(bench: Bench, position: int) -> None:
    bench.tables.offer_copy([TABLE], snapshot_name="s", position=Lsn(position))


def planned(bench: Bench, position: int) -> None:
    """And the snapshot is lost: who still reads at it may complete the copy."""
    offered(bench, position)
    CopyProgress(bench.state, PIPELINE, "default").plan(TABLE, Lsn(position), [CopyRange(0, 16400, 0, None, 1)])
    bench.tables.withdraw_copies()


@pytest.mark.parametrize("begin", [offered, planned])
def test_a_letter_of_a_copy_stays_until_the_copy_is_over(bench: Bench, begin: Callable[[Bench, int], None]) -> None:
    bench.tables.request_copy(TABLE)
    begin(bench, 5000)
    bench.letters.add([bench.letter(-1, 4000), bench.letter(-1, 5000), bench.letter(-1, 6000)])
    bench.move()
    bench.retention.forget_letters()
    assert sorted(letter.position for letter in bench.letters.newest()) == [Lsn(5000), Lsn(6000)]
    bench.tables.complete_copy(TABLE, position=Lsn(5000), rows=1)
    CopyProgress(bench.state, PIPELINE, "default").forget(TABLE, Lsn(5000))
    assert bench.kept() == []
    assert bench.letters.counts() == {TABLE: 3}


def test_letters_go_bit_by_bit(bench: Bench) -> None:
    bench.letters.add([bench.letter(offset) for offset in range(5)])
    bench.move()
    assert [bench.retention.forget_letters(most=2) for _ in range(4)] == [2, 2, 1, 0]


def test_pipelines_have_letters_of_their_own(bench: Bench) -> None:
    bench.letters.add([bench.letter(1)])
    bench.move()
    assert Retention(bench.state, "other").forget_letters() == 0
    assert bench.letters.counts() == {TABLE: 1}
    assert DeadLetters(bench.state, "other").counts() == {}
