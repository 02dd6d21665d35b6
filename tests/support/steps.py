"""The steps after which the fault tests kill a process. A test keeps this list equal to what the code says."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

START_STEPS = ("slot created", "epoch begun", "snapshot exported")
FLUSH_STEPS = ("intent noted", "file uploaded", "offsets claimed", "position acknowledged")
COPY_STEPS = (
    "table created",
    "ranges planned",
    "range written",
    "range noted",
    "copy staged",
    "copy published",
    "copy completed",
)
CYCLE_STEPS = (
    "cursor read",
    "claims taken",
    "table evolved",
    "letters noted",
    "batch staged",
    "batch published",
    "cursor noted",
)

T = TypeVar("T")


def seed() -> int:
    return int(os.environ.get("ICESTREAM_SEED", "1"))


def chosen(steps: Sequence[T], what: str) -> T:
    """One of them, by ICESTREAM_SEED: the slice of a matrix that runs in minutes."""
    return random.Random(f"{seed()} {what}").choice(steps)
