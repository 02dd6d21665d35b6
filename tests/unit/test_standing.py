"""A table goes on only where its cursor and the log fit together."""

from __future__ import annotations

import pytest

from icestream.errors import TableParked
from icestream.materialize.standing import LogStanding, require_fitting
from icestream.model.cursor import Cursor

LOG = LogStanding("epoch", first_offset=10, next_offset=20, position=100)


def test_a_copy_may_be_newer_than_the_newest_claim() -> None:
    cursor = Cursor("epoch", 20, 500, copied_at=500)
    assert require_fitting("s.t", cursor, LOG) is cursor


@pytest.mark.parametrize("offset", [10, 15, 20])
def test_a_cursor_inside_the_log_is_taken(offset: int) -> None:
    cursor = Cursor("epoch", offset, 1)
    assert require_fitting("s.t", cursor, LOG) is cursor


@pytest.mark.parametrize(
    ("cursor", "reason"),
    [
        (None, "no cursor"),
        (Cursor("other", 15, 1), "epoch other"),
        (Cursor("epoch", 21, 1), "beyond the log's end 20"),
        (Cursor("epoch", 9, 1), "the log starts at 10"),
        (Cursor("epoch", 15, 101), "the log ends at 0/64"),
    ],
)
def test_anything_doubtful_parks_the_table_and_says_why(cursor: Cursor | None, reason: str) -> None:
    with pytest.raises(TableParked, match=reason) as caught:
        require_fitting("s.t", cursor, LOG)
    assert caught.value.hint == "icestream resync s.t"
