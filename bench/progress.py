"""What the bench says while it works, and how it waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

_POLL_S = 0.02  # the error of every clock that ends with a wait; more often would take time from the measured


@contextmanager
def step(text: str) -> Iterator[None]:
    """Says what is being done, and afterwards how long it took."""
    print(f"  {text} …", end="", flush=True)
    began = time.monotonic()
    try:
        yield
    except BaseException:
        print(" failed", flush=True)
        raise
    print(f" {time.monotonic() - began:.1f} s", flush=True)


def wait_until(
    condition: Callable[[], T | None], what: str, *, timeout_s: float = 1800.0, poll_s: float = _POLL_S
) -> T:
    """Asks until `condition` gives something true, and returns that. Raises TimeoutError."""
    deadline = time.monotonic() + timeout_s
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s:.0f} s for {what}")
        time.sleep(poll_s)
    return answer
