"""Capture is killed after every step of its start and of a flush, then started again: nothing is lost or doubled."""

from __future__ import annotations

import signal

import pytest

from support.shop import Shop
from support.steps import FLUSH_STEPS, START_STEPS
from support.waiting import wait_for


@pytest.mark.parametrize("step", START_STEPS)
def test_capture_killed_while_it_starts(shop: Shop, step: str) -> None:
    crashed = shop.processes.capture(crash_at=step)
    assert crashed.wait_for_end() == -signal.SIGKILL
    shop.change()
    capture = shop.processes.capture()
    shop.wait_until_offered()
    shop.change()
    shop.bring_forward()
    capture.stop()
    shop.assert_mirrored()


@pytest.mark.parametrize("step", FLUSH_STEPS)
def test_capture_killed_while_it_flushes(shop: Shop, step: str) -> None:
    shop.go_live()
    crashed = shop.processes.capture(crash_at=f"{step}:3")
    wait_for(lambda: shop.change() or crashed.code is not None, f"capture to come to {step!r}")
    assert crashed.code == -signal.SIGKILL, crashed.output
    shop.change()
    capture = shop.processes.capture()
    shop.bring_forward()
    capture.stop()
    shop.assert_mirrored()


def test_capture_killed_between_the_files_of_a_large_transaction(shop: Shop) -> None:
    shop.go_live()
    crashed = shop.processes.capture(crash_at="file uploaded:2")
    crashed.wait_for_output("streaming")
    shop.pipeline.execute(
        "BEGIN",
        "INSERT INTO customers SELECT g, 'large', 1, repeat('z', 2500) FROM generate_series(100001, 110000) g",
        "SAVEPOINT half",
        "DELETE FROM customers WHERE id > 105000",
        "ROLLBACK TO SAVEPOINT half",
        "INSERT INTO orders SELECT g, 1 FROM generate_series(100001, 110000) g",
        "COMMIT",
    )
    assert crashed.wait_for_end() == -signal.SIGKILL, crashed.output
    capture = shop.processes.capture()
    shop.bring_forward()
    capture.stop()
    shop.assert_mirrored()
