"""Two groups make tables of their own from one log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from icestream.lake.session import Lake
from icestream.model.table import TableState
from icestream.state.retention import Retention
from support.pipeline import Pipeline
from support.waiting import wait_for


@pytest.fixture
def pipeline(lake: Lake, database: str, tmp_path: Path, namespace: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace)
    yield pipeline
    pipeline.close()


@pytest.fixture
def join(
    pipeline: Pipeline, lake: Lake, database: str, tmp_path: Path, namespace: str
) -> Iterator[Callable[[], Pipeline]]:
    """A second group at the same log, as its workers would join it."""
    joined: list[Pipeline] = []

    def join() -> Pipeline:
        group = {"state.group": "audit", "state.pipeline": namespace}
        joined.append(Pipeline(lake, database, tmp_path, namespace=f"{namespace}_audit", **group))
        return joined[-1]

    yield join
    for each in joined:
        each.close()


def test_each_group_copies_and_follows_for_itself(pipeline: Pipeline, join: Callable[[], Pipeline]) -> None:
    pipeline.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, note text)",
        "INSERT INTO orders SELECT g, 'n' || g FROM generate_series(1, 100) g",
    )
    with pipeline.capturing():
        pipeline.bring_forward()
        pipeline.execute("UPDATE orders SET note = 'changed' WHERE id < 10")
        audit = join()
        audit.tables.adopt(audit.settings.target_for)
        wait_for(lambda: audit.tables.all()[0].state is TableState.COPYING, what="the copy to be offered")
        pipeline.execute("DELETE FROM orders WHERE id = 50", "INSERT INTO orders VALUES (101, 'late')")
        pipeline.wait_until_captured()
        pipeline.bring_forward()
        pipeline.assert_equal()
        assert Retention(pipeline.db, pipeline.settings.pipeline).give_up_passed(keep_s=0) == 0

        audit.bring_forward()
        pipeline.execute("UPDATE orders SET id = -id WHERE id > 95")
        pipeline.wait_until_captured()
        for group in (audit, pipeline):
            group.bring_forward()
            group.assert_equal()
            assert [row.state for row in group.tables.all()] == [TableState.LIVE]
    assert audit.tables.all()[0].target.namespace == audit.settings.sink.namespace
    assert Retention(pipeline.db, pipeline.settings.pipeline).give_up_passed(keep_s=0) > 0
