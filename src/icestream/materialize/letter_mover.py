"""Dead letters to the Iceberg table `<namespace>.icestream_dead_letters`, each exactly once.

 step              what                                                  a crash right after it
 1 move begun      which letters go, under an id, in the state           the next attempt goes on with the same move
 2 move published  the letters, and the id as a property, in one commit  the next attempt finds the id and only notes it
 3 move noted      in the state                                          nothing is redone

A second worker with the same move is refused by the publish, as in a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from pyspark.sql import DataFrame, SparkSession

from icestream.errors import LakeError
from icestream.lake.catalog import TableSpec
from icestream.lake.commit import Commit
from icestream.lake.history import Owner
from icestream.lake.session import Lake
from icestream.lake.table import IcebergTable
from icestream.model.columns import LakeColumn
from icestream.model.types import STRING, Kind, TargetType
from icestream.state.dead_letters import DeadLetter
from icestream.state.letter_moves import LetterMoves, Move

TABLE = "icestream_dead_letters"
_NEWEST_MOVE = "icestream.moved."  # and the owner: several pipelines may share a namespace
_COLUMNS = (
    LakeColumn("id", STRING),
    LakeColumn("pipeline", STRING),
    LakeColumn("table_name", STRING),
    LakeColumn("column_name", STRING),
    LakeColumn("key", STRING),
    LakeColumn("value", STRING),
    LakeColumn("reason", STRING),
    LakeColumn("position", STRING),
    LakeColumn("offset", TargetType(Kind.LONG)),
    LakeColumn("created_at", TargetType(Kind.TIMESTAMPTZ)),
)
_FORMAT_VERSION = 2  # nothing of it is ever changed: what more readers can read is better


class LetterMover:
    """Used by one thread at a time. Several in different processes do no harm."""

    def __init__(self, lake: Lake, owner: Owner, moves: LetterMoves) -> None:
        self._lake = lake
        self._owner = owner
        self._moves = moves

    def run(self, tables: Mapping[str, Sequence[str]]) -> int:
        """Moves the letters of these tables (by namespace) that are not in Iceberg yet; gives their number.

        May be repeated. Raises PublishRefused, LakeError or StateUnavailable: then later. A namespace that takes no
        letters does not hold up the others: what it raises is raised when they are done.
        """
        moved, failures = 0, list[LakeError]()
        for namespace in dict.fromkeys([*self._moves.unfinished(), *tables]):
            try:
                moved += self._run(namespace, tables.get(namespace, ()))
            except LakeError as err:
                failures.append(err)
        if failures:
            raise failures[0]
        return moved

    def _run(self, namespace: str, tables: Sequence[str]) -> int:
        moved = 0
        while (move := self._moves.begin(namespace, tables)) is not None:
            self._move(move)
            moved += len(move.letters)
        return moved

    def _move(self, move: Move) -> None:
        table = self._table(move.namespace)
        if not self._moves.is_open(move):
            return  # somebody else went on with it; asked after the table was read, so that is certain
        if table.properties().get(self._property) != move.id:
            self._publish(table, move)
        self._moves.finish(move)

    def _publish(self, table: IcebergTable, move: Move) -> None:
        with self._lake.session() as session:
            letters = _frame(session, self._owner.pipeline, move.letters)
            commit = Commit(table, session, self._owner, table.head())
            commit.make(lambda stage: stage.append(letters, "1/1", {}), lambda _: {self._property: move.id})

    @property
    def _property(self) -> str:
        return f"{_NEWEST_MOVE}{self._owner}"

    def _table(self, namespace: str) -> IcebergTable:
        table = self._lake.catalog.load(namespace, TABLE)
        if table is None:
            table = self._lake.catalog.create(namespace, TABLE, TableSpec(_COLUMNS, _FORMAT_VERSION))
        have = [(field.name, field.type) for field in table.fields()]
        if have != [(column.name, column.type.iceberg) for column in _COLUMNS]:
            raise LakeError(
                f"{table.key} has other columns than dead letters have", hint=f"rename it: {TABLE} is Icestream's own"
            )
        return table


def _frame(session: SparkSession, pipeline: str, letters: Sequence[DeadLetter]) -> DataFrame:
    schema = ", ".join(f"`{column.name}` {column.type.spark}" for column in _COLUMNS)
    return session.createDataFrame([_row(pipeline, letter) for letter in letters], schema)


def _row(pipeline: str, letter: DeadLetter) -> tuple[object, ...]:
    return (
        letter.id,
        pipeline,
        letter.table,
        letter.column,
        msgspec.json.encode(dict(letter.key)).decode(),
        letter.value,
        letter.reason,
        str(letter.position),
        letter.offset,
        letter.created_at,
    )
