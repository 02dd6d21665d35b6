"""The catalog's answer to a commit is lost: only the table's history tells whether it happened."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from py4j.protocol import Py4JJavaError

from icestream.errors import LakeUnavailable
from icestream.lake import publish as publishing
from icestream.lake.java import Java
from icestream.lake.next_columns import NextColumns
from icestream.lake.publish import Published, publish
from icestream.lake.stage import Staged
from icestream.lake.table import IcebergTable
from support.shop import Shop

Commit = Callable[[], None]


class LostAnswers:
    """Every commit ends in an unknown outcome. `reaches_catalog`: it happens before its answer is lost."""

    def __init__(self, *, reaches_catalog: bool) -> None:
        self.reaches_catalog = reaches_catalog
        self.on_their_way: list[Commit] = []  # commits that the catalog has not seen yet

    def publish(
        self, table: IcebergTable, staged: Staged, properties: Mapping[str, str], columns: NextColumns | None = None
    ) -> Published:
        losing = copy.copy(table)
        losing.java = _LosingTable(table, self)
        return publish(losing, staged, properties, columns)

    def commit(self, perform: Commit, jvm: Java) -> None:
        if self.reaches_catalog:
            perform()
        else:
            self.on_their_way.append(perform)
        lost = jvm.java.lang.RuntimeException("the connection to the catalog was lost")
        raise Py4JJavaError("", jvm.org.apache.iceberg.exceptions.CommitStateUnknownException(lost))


class _LosingTable:
    """A Java table, as far as a publish uses it."""

    def __init__(self, table: IcebergTable, answers: LostAnswers) -> None:
        self._table = table
        self._answers = answers

    def refresh(self) -> None:
        self._table.java.refresh()

    def operations(self) -> _LosingTable:
        return self

    def current(self) -> Java:
        return self._table.java.operations().current()

    def commit(self, base: Java, metadata: Java) -> None:
        operations = self._table.java.operations()
        self._answers.commit(lambda: operations.commit(base, metadata), self._table.jvm)


@contextmanager
def lost_answers(*, reaches_catalog: bool) -> Iterator[LostAnswers]:
    answers = LostAnswers(reaches_catalog=reaches_catalog)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publishing, "publish", answers.publish)
        yield answers


def test_a_commit_that_happened_is_found_in_the_history(shop: Shop) -> None:
    with shop.pipeline.capturing(), lost_answers(reaches_catalog=True):
        shop.pipeline.bring_forward()
        shop.change()
        shop.bring_forward()
    shop.assert_mirrored()


def test_a_commit_that_did_not_happen_is_made_again(shop: Shop) -> None:
    with shop.pipeline.capturing():
        with lost_answers(reaches_catalog=False), pytest.raises(LakeUnavailable, match="unknown"):
            shop.pipeline.bring_forward()
        shop.pipeline.bring_forward()
        shop.change()
        shop.pipeline.wait_until_captured()
        with lost_answers(reaches_catalog=False), pytest.raises(LakeUnavailable, match="unknown"):
            shop.pipeline.bring_forward()
        shop.bring_forward()
    shop.assert_mirrored()


def test_a_commit_that_happens_after_it_was_looked_for_is_not_made_again(shop: Shop) -> None:
    with shop.pipeline.capturing():
        shop.pipeline.bring_forward()
        shop.change()
        shop.pipeline.wait_until_captured()
        with lost_answers(reaches_catalog=False) as answers, pytest.raises(LakeUnavailable, match="unknown"):
            shop.pipeline.bring_forward()
        for perform in answers.on_their_way:
            perform()
        shop.bring_forward()
    shop.assert_mirrored()
