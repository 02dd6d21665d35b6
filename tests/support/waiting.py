"""The only place in the tests that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


PATIENCE_S = 240.0  # only what hangs takes that long, however crowded the machine is


def wait_for(condition: Callable[[], T], what: str = "the condition") -> T:
    """Asks until `condition` gives something true, and returns that."""
    deadline = time.monotonic() + PATIENCE_S
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {PATIENCE_S} s for {what}; the last answer was {answer!r}")
        time.sleep(0.02)
    return answer


def let_pass(seconds: float) -> None:
    """For faults that come at a random moment; never to wait for something."""
    time.sleep(seconds)
