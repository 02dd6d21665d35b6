"""Spark without its greeting: the lines that a JVM writes to stderr before any log setting counts."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_GREETING: Final = (
    b"WARNING: Using incubator modules",
    b"Using Spark's default log4j profile",
    b"Setting default log level to",
    b"To adjust logging level use",
)
_STDERR = 2


@contextmanager
def without_greeting() -> Iterator[None]:
    """Processes started in the block write to stderr through us; everything but the greeting is passed on."""
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    reading, writing = os.pipe()
    os.dup2(writing, _STDERR)
    os.close(writing)
    threading.Thread(target=_pass_on, args=(reading, kept), name="jvm-stderr", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)


def _pass_on(reading: int, writing: int) -> None:
    """Until the last process that holds the other end is gone."""
    with os.fdopen(reading, "rb") as lines, os.fdopen(writing, "wb", buffering=0) as out:
        for line in lines:
            if not line.startswith(_GREETING):
                out.write(line)
