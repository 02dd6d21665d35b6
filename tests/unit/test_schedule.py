"""When a table is due."""

from __future__ import annotations

from datetime import UTC, datetime

from icestream.materialize.schedule import EAGER_ROWS, MAX_ROWS, Turn
from icestream.state.log_entries import PendingLog


def waiting(rows: int) -> PendingLog:
    return PendingLog("t", rows, 1, datetime.now(UTC), 0.0, rows)


def test_a_table_with_nothing_waiting_is_only_looked_at_now_and_then() -> None:
    turn = Turn(started=100.0)
    assert not turn.is_due(None, now=120.0, interval_s=10.0)
    assert turn.is_due(None, now=200.0, interval_s=10.0)


def test_the_first_change_after_a_quiet_time_is_due_at_once() -> None:
    assert Turn().is_due(waiting(1), now=0.0, interval_s=10.0)


def test_a_table_waits_for_its_interval_unless_much_has_come() -> None:
    turn = Turn()
    turn.begin(100.0)
    turn.succeed()
    assert not turn.is_due(waiting(EAGER_ROWS - 1), now=105.0, interval_s=10.0)
    assert turn.is_due(waiting(EAGER_ROWS), now=105.0, interval_s=10.0)
    assert turn.is_due(waiting(1), now=110.0, interval_s=10.0)


def test_a_table_that_is_worked_on_is_not_due() -> None:
    turn = Turn()
    turn.begin(100.0)
    assert not turn.is_due(waiting(EAGER_ROWS), now=500.0, interval_s=10.0)


def test_pauses_after_failures_grow_and_end_with_success() -> None:
    turn = Turn()
    pauses = []
    for _ in range(10):
        turn.fail(now=0.0)
        pauses.append(turn.not_before)
    assert pauses == sorted(pauses) and pauses[-1] == 60.0
    turn.succeed()
    assert turn.is_free(0.0)


def test_after_some_refusals_batches_shrink_but_never_to_nothing() -> None:
    turn = Turn()
    sizes = [turn.max_rows()]
    for _ in range(40):
        turn.refuse(now=0.0)
        sizes.append(turn.max_rows())
    assert sizes[0] == sizes[2] == MAX_ROWS
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] == 1


def test_after_failures_batches_shrink_too_also_after_those_of_an_earlier_worker() -> None:
    turn = Turn()
    turn.fail(now=0.0)
    assert turn.max_rows() < MAX_ROWS
    turn.succeed()
    assert turn.max_rows() == MAX_ROWS
    assert turn.max_rows(failures=2) < turn.max_rows(failures=1) < MAX_ROWS
    assert turn.max_rows(failures=1000) == 1
