"""A worker dies after every step of a first copy and of a cycle; the next one makes the table equal.

For every step inside of this process, where the death is an exception that nobody handles; with real processes and
SIGKILL for two steps chosen by ICESTREAM_SEED, and for all of them in `make test-long`.
"""

from __future__ import annotations

import signal

import pytest

from support.dying import dying_after
from support.shop import Shop
from support.steps import COPY_STEPS, CYCLE_STEPS, chosen


@pytest.mark.parametrize("step", COPY_STEPS)
def test_first_copy_that_dies(shop: Shop, step: str) -> None:
    with shop.pipeline.capturing():
        shop.change()
        with dying_after(step):
            shop.pipeline.bring_forward()
        shop.change()
        shop.bring_forward()
    shop.assert_mirrored()


@pytest.mark.parametrize("step", CYCLE_STEPS)
def test_cycle_that_dies(shop: Shop, step: str) -> None:
    with shop.pipeline.capturing():
        shop.pipeline.bring_forward()
        shop.change()
        shop.pipeline.wait_until_captured()
        with dying_after(step):
            shop.pipeline.bring_forward()
        shop.change()
        shop.bring_forward()
    shop.assert_mirrored()
    assert shop.pipeline.letters.counts() == {f"{shop.namespace}.customers": 2}, "one letter for each NaN"


def test_worker_killed_in_its_copy_and_in_a_cycle(shop: Shop) -> None:
    _kill_worker_after(shop, chosen(COPY_STEPS, "copy"), chosen(CYCLE_STEPS, "cycle"))


@pytest.mark.long
@pytest.mark.parametrize("step", [*COPY_STEPS, *CYCLE_STEPS])
def test_worker_killed_after_each_step(shop: Shop, step: str) -> None:
    _kill_worker_after(shop, step)


def _kill_worker_after(shop: Shop, *steps: str) -> None:
    with shop.pipeline.capturing():
        for step in steps:
            worker = shop.processes.worker(crash_at=step)
            shop.change()
            assert worker.wait_for_end() == -signal.SIGKILL, worker.output
        worker = shop.processes.worker()
        shop.change()
        shop.wait_until_applied()
        worker.stop()
    shop.assert_mirrored()
