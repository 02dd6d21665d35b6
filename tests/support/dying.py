"""A death inside of this process, right after a step: an exception that nobody handles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from icestream.materialize import cycle, first_copy, range_copy, table_work
from icestream.observe.steps import reached


class Death(BaseException):
    """Not an Exception: nobody in the code under test may handle it."""


@contextmanager
def dying_after(step: str) -> Iterator[None]:
    """The block ends by a death right after the step."""

    def die(name: str) -> None:
        reached(name)
        if name == step:
            raise Death(step)

    with pytest.MonkeyPatch.context() as patch:
        for module in (cycle, first_copy, range_copy, table_work):
            patch.setattr(module, "reached", die)
        with pytest.raises(Death, match=step):
            yield
