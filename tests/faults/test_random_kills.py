"""`icestream run` under load, its processes killed at random moments; ICESTREAM_SEED chooses them."""

from __future__ import annotations

import os
import random
import re
import signal

import pytest

from support.processes import Process
from support.shop import Shop
from support.steps import seed
from support.waiting import let_pass, wait_for

_STARTED = r"role started role={} pid=(\d+)"


def test_capture_and_worker_killed_at_random_moments(shop: Shop) -> None:
    rng = random.Random(seed())
    run = shop.processes.start("run")
    with shop.changing():
        for role in ("capture", "worker"):
            _wait_for_work(shop, run)
            let_pass(rng.uniform(0, 2))
            _kill(run, role)
    shop.wait_until_applied()
    run.stop()
    shop.assert_mirrored()


@pytest.mark.long
@pytest.mark.parametrize("number", range(4))
def test_everything_killed_at_random_moments(shop: Shop, number: int) -> None:
    rng = random.Random(seed() * 1000 + number)
    run = shop.processes.start("run")
    with shop.changing():
        for _ in range(6):
            victim = rng.choice(["capture", "worker", "run"])
            let_pass(rng.uniform(0, 15))
            if victim == "run":
                run.kill()  # its roles notice, and drain by themselves
                run = shop.processes.start("run")
            else:
                _kill(run, victim)
    shop.wait_until_applied()
    run.stop()
    shop.assert_mirrored()


def _wait_for_work(shop: Shop, run: Process) -> None:
    """Until the roles have done something: killed while it starts is what the crash matrix does."""
    then = {key: stored.cursor.position for key, stored in shop.pipeline.cursors.all().items()}

    def moved() -> bool:
        now = shop.pipeline.cursors.all()
        return run.is_running() and any(stored.cursor.position > then.get(key, 0) for key, stored in now.items())

    wait_for(moved, "a table to come forward")


def _kill(run: Process, role: str) -> None:
    """SIGKILL to the role's present process; the supervisor has to start it again."""
    pids = re.findall(_STARTED.format(role), run.output)
    if pids:
        try:
            os.kill(int(pids[-1]), signal.SIGKILL)
        except ProcessLookupError:
            return  # between two lives
        run.wait_for_output(f"role started role={role}", times=len(pids) + 1)
