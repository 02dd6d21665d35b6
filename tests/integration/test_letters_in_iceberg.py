"""Dead letters reach their Iceberg table exactly once, whoever dies or comes back late."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from icestream.errors import LakeError, PublishRefused
from icestream.lake.catalog import TableSpec
from icestream.lake.history import Owner
from icestream.lake.session import Lake
from icestream.materialize.letter_mover import TABLE, LetterMover
from icestream.model.columns import LakeColumn
from icestream.model.ids import new_epoch
from icestream.model.position import Lsn
from icestream.model.types import STRING
from icestream.state.database import Database
from icestream.state.dead_letters import DeadLetter, DeadLetters
from icestream.state.letter_moves import LetterMoves, Move
from support.shop import Shop
from support.state import PIPELINE
from support.working import working

EPOCH = new_epoch()
OWNER = Owner(PIPELINE, "default")


class Moves(LetterMoves):
    """Something happens right before a move is looked up, or finished."""

    before_asking: Callable[[], object] | None = None
    before_finishing: Callable[[], object] | None = None

    def is_open(self, move: Move) -> bool:
        found = super().is_open(move)
        if self.before_asking is not None:
            self.before_asking()
        return found

    def finish(self, move: Move) -> None:
        if self.before_finishing is not None:
            self.before_finishing()
        super().finish(move)


class Bench:
    def __init__(self, lake: Lake, state: Database, namespace: str) -> None:
        self.letters = DeadLetters(state, PIPELINE)
        self.tables = {namespace: [f"{namespace}.orders"]}
        self._lake = lake
        self._state = state
        self._namespace = namespace

    def add(self, *offsets: int) -> None:
        table = f"{self._namespace}.orders"
        self.letters.add(
            DeadLetter(table, EPOCH, offset, Lsn(0x1000), "price", {"id": "5"}, 'N"aN', "why") for offset in offsets
        )

    def mover(self) -> tuple[LetterMover, Moves]:
        moves = Moves(self._state, PIPELINE, "default")
        return LetterMover(self._lake, OWNER, moves), moves

    def found(self, columns: str = "offset") -> list[object]:
        rows = self._lake.spark.sql(f"SELECT {columns} FROM {self._namespace}.{TABLE} ORDER BY 1").collect()
        return [row[0] if len(row) == 1 else tuple(row) for row in rows]


@pytest.fixture
def bench(lake: Lake, state: Database, namespace: str) -> Bench:
    return Bench(lake, state, namespace)


def test_a_letter_arrives_whole(bench: Bench, namespace: str) -> None:
    bench.add(7)
    mover, _ = bench.mover()
    assert mover.run(bench.tables) == 1
    (letter,) = bench.letters.newest()
    columns = "id, pipeline, table_name, column_name, key, value, reason, position, offset, created_at IS NOT NULL"
    table = f"{namespace}.orders"
    assert bench.found(columns) == [
        (letter.id, PIPELINE, table, "price", '{"id":"5"}', 'N"aN', "why", "0/1000", 7, True)
    ]
    assert mover.run(bench.tables) == 0


def test_a_mover_that_dies_before_it_noted_the_move_doubles_nothing(bench: Bench) -> None:
    bench.add(1, 2)
    mover, moves = bench.mover()
    moves.before_finishing = pytest.fail
    with pytest.raises(pytest.fail.Exception):
        mover.run(bench.tables)
    bench.add(3)
    bench.mover()[0].run(bench.tables)
    assert bench.found() == [1, 2, 3]


def test_a_mover_that_dies_before_it_published_loses_nothing(bench: Bench) -> None:
    bench.add(1, 2)
    mover, moves = bench.mover()
    moves.before_asking = pytest.fail
    with pytest.raises(pytest.fail.Exception):
        mover.run(bench.tables)
    bench.add(3)
    bench.mover()[0].run(bench.tables)
    assert bench.found() == [1, 2, 3]


def test_a_mover_that_comes_back_late_is_refused(bench: Bench) -> None:
    bench.add(1)
    late, moves = bench.mover()

    def others_go_on() -> None:
        moves.before_asking = None
        bench.mover()[0].run(bench.tables)
        bench.add(2)
        bench.mover()[0].run(bench.tables)

    moves.before_asking = others_go_on
    with pytest.raises(PublishRefused):
        late.run(bench.tables)
    assert bench.found() == [1, 2]


def test_a_table_of_that_name_with_other_columns_is_left_alone(bench: Bench, lake: Lake, namespace: str) -> None:
    lake.catalog.create(namespace, TABLE, TableSpec((LakeColumn("mine", STRING),)))
    bench.add(1)
    with pytest.raises(LakeError, match="other columns"):
        bench.mover()[0].run(bench.tables)


def test_a_namespace_that_takes_no_letters_does_not_hold_up_the_others(
    bench: Bench, lake: Lake, namespace: str
) -> None:
    foreign = f"{namespace}_foreign"
    lake.catalog.create(foreign, TABLE, TableSpec((LakeColumn("mine", STRING),)))
    bench.add(1)
    bench.letters.add([DeadLetter(f"{foreign}.t", EPOCH, 2, Lsn(0x1000), "price", {}, "NaN", "why")])
    for _ in range(2):
        with pytest.raises(LakeError, match="other columns"):
            bench.mover()[0].run({foreign: [f"{foreign}.t"], **bench.tables})
    assert bench.found() == [1]


def test_a_worker_has_moved_the_letters_when_it_ends(shop: Shop) -> None:
    with shop.pipeline.capturing():
        shop.change()
        with working(shop):
            shop.wait_until_applied()
    noted = sorted(letter.id for letter in shop.pipeline.letters.newest())
    found = shop.pipeline.query(f"SELECT id FROM {shop.namespace}.{TABLE} ORDER BY id")
    assert noted
    assert [id_ for (id_,) in found] == noted
