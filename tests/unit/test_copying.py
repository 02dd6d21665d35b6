"""Runs of ranges: what one task of a first copy reads and writes."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from icestream.model.copying import CopyRange, RangeRun, next_run


def ranges(*oids: int) -> list[CopyRange]:
    return [CopyRange(number, oid, number * 10, number * 10 + 10, 10) for number, oid in enumerate(oids)]


def runs(left: Sequence[CopyRange], at_once: int) -> list[RangeRun]:
    found = []
    while left:
        found.append(next_run(left, at_once=at_once))
        left = left[len(found[-1].ranges) :]
    return found


def test_a_run_is_one_range_from_its_first_page_to_its_last() -> None:
    run = RangeRun(tuple(ranges(7, 7, 7)[1:]))
    assert (run.pages.oid, run.pages.start, run.pages.end, run.pages.pages) == (7, 10, 30, 20)
    assert list(run.numbers) == [1, 2]


def test_the_last_run_of_a_relation_has_no_end() -> None:
    last = CopyRange(1, 7, 10, None, 4)
    assert RangeRun((ranges(7)[0], last)).pages.end is None


def test_runs_become_shorter_so_that_all_end_together() -> None:
    assert [len(run.ranges) for run in runs(ranges(*[7] * 13), at_once=2)] == [6, 3, 2, 1, 1]


def test_a_run_has_a_longest_length() -> None:
    assert len(next_run(ranges(*[7] * 1000), at_once=2).ranges) == 8


@given(st.lists(st.sampled_from([7, 8]), min_size=1, max_size=40), st.data(), st.integers(1, 6))
def test_runs_are_of_one_relation_and_leave_nothing_out(oids: list[int], data: st.DataObject, at_once: int) -> None:
    left = [part for part in ranges(*sorted(oids)) if data.draw(st.booleans())]
    found = runs(left, at_once)
    assert [part for run in found for part in run.ranges] == left
    for run in found:
        assert list(run.numbers) == [part.number for part in run.ranges]
        assert len({part.oid for part in run.ranges}) == 1
