"""A worker sleeps through its lease with a batch that is ready to publish, and wakes up beside its successor."""

from __future__ import annotations

import signal

import pytest

from support.processes import Process
from support.shop import Shop


def test_worker_that_wakes_up_after_its_successor_published_the_same_batch(shop: Shop) -> None:
    with shop.pipeline.capturing():
        shop.pipeline.bring_forward()
        sleeper = _worker_that_sleeps_with_a_batch(shop)
        successor = shop.processes.worker("b")
        shop.wait_until_applied()
        _wake_up(sleeper)
        _work_on_together(shop, sleeper, successor)
    shop.assert_mirrored()


@pytest.mark.long
def test_worker_that_wakes_up_after_its_successor_published_more(shop: Shop) -> None:
    with shop.pipeline.capturing():
        shop.pipeline.bring_forward()
        sleeper = _worker_that_sleeps_with_a_batch(shop)
        shop.change()
        shop.pipeline.wait_until_captured()
        successor = shop.processes.worker("b")
        shop.wait_until_applied()
        shop.change()
        shop.wait_until_applied()
        _wake_up(sleeper)
        _work_on_together(shop, sleeper, successor)
    shop.assert_mirrored()


@pytest.mark.long
def test_worker_that_wakes_up_while_its_successor_is_about_to_publish(shop: Shop) -> None:
    with shop.pipeline.capturing():
        shop.pipeline.bring_forward()
        sleeper = _worker_that_sleeps_with_a_batch(shop)
        successor = shop.processes.worker("b", pause_at="batch staged")
        successor.wait_for_pause()  # its own stage has dropped the sleeper's branch
        _wake_up(sleeper)
        shop.wait_until_applied()
        successor.send(signal.SIGCONT)
        _work_on_together(shop, sleeper, successor)
    shop.assert_mirrored()


@pytest.mark.long
def test_worker_whose_branch_is_gone_when_it_wakes_up(shop: Shop) -> None:
    with shop.pipeline.capturing():
        shop.pipeline.bring_forward()
        sleeper = _worker_that_sleeps_with_a_batch(shop)
        _drop_branches(shop)
        _wake_up(sleeper)
        shop.wait_until_applied()
        sleeper.stop()
    shop.assert_mirrored()


@pytest.mark.long
def test_worker_that_sleeps_in_its_first_copy(shop: Shop) -> None:
    with shop.pipeline.capturing():
        sleeper = shop.processes.worker("a", pause_at="copy staged")
        sleeper.wait_for_pause()
        successor = shop.processes.worker("b")
        shop.change()
        shop.wait_until_applied()
        _wake_up(sleeper)
        _work_on_together(shop, sleeper, successor)
    shop.assert_mirrored()


def _worker_that_sleeps_with_a_batch(shop: Shop) -> Process:
    sleeper = shop.processes.worker("a", pause_at="batch staged")
    shop.change()
    sleeper.wait_for_pause()
    return sleeper


def _wake_up(sleeper: Process) -> None:
    sleeper.send(signal.SIGCONT)
    sleeper.wait_for_output("publish was refused")
    sleeper.wait_for_output("joined again")


def _work_on_together(shop: Shop, *workers: Process) -> None:
    shop.change()
    shop.wait_until_applied()
    for worker in workers:
        worker.stop()


def _drop_branches(shop: Shop) -> None:
    for key in shop.keys:
        table = shop.pipeline.lake.catalog.load(shop.namespace, key.rpartition(".")[2])
        assert table is not None
        for branch in table.branches():
            if branch != "main":
                table.java.manageSnapshots().removeBranch(branch).commit()
