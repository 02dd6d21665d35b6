"""In the other write modes, too: a worker dies after every step of a copy and a cycle, nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.lake.session import Lake
from icestream.model.table import TableState
from support.dying import dying_after
from support.pipeline import Pipeline
from support.processes import Processes
from support.shop import Shop
from support.steps import COPY_STEPS, CYCLE_STEPS


@pytest.fixture
def shop(lake: Lake, database: str, tmp_path: Path, namespace: str, processes: Processes, mode: str) -> Iterator[Shop]:
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace, **{"sink.write_mode": mode})
    yield Shop(pipeline, processes)
    pipeline.close()


@pytest.mark.parametrize("mode", ["append", "equality"])
def test_copies_and_cycles_that_die(shop: Shop, mode: str) -> None:
    pipeline = shop.pipeline
    with pipeline.capturing():
        for step in COPY_STEPS:
            with dying_after(step):
                pipeline.bring_forward()
        for step in CYCLE_STEPS:
            shop.change()
            pipeline.wait_until_captured()
            with dying_after(step):
                pipeline.bring_forward()
        shop.bring_forward()
    assert shop.states() == dict.fromkeys(shop.keys, TableState.LIVE), shop.reasons()
    pipeline.assert_equal()
    if mode == "append":
        for key in shop.keys:
            _assert_every_change_once(pipeline, key)


def _assert_every_change_once(pipeline: Pipeline, key: str) -> None:
    """The offsets are those of the log, without a gap: nothing was skipped, as the copy was made before any change."""
    counted = f"SELECT count(*), count(DISTINCT _offset), min(_offset), max(_offset) FROM {key} WHERE _op <> 'R'"
    ((rows, places, first, last),) = pipeline.query(counted)
    assert (rows, places, first) == (last + 1, last + 1, 0)
    assert last + 1 == pipeline.entries.extent(key).next_offset
    copied = pipeline.query(f"SELECT count(*), count(DISTINCT struct(*)) FROM {key} WHERE _op = 'R'")
    assert copied == [(40, 40)]
