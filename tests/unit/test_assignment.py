"""Every worker must compute the same division of the tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.state.assignment import assign


@pytest.mark.parametrize(
    ("tables", "workers", "expected"),
    [
        (["c", "a", "b"], ["w2", "w1"], {"w1": ["a", "c"], "w2": ["b"]}),
        (["a"], ["w1", "w2", "w3"], {"w1": ["a"], "w2": [], "w3": []}),
        ([], ["w1"], {"w1": []}),
        (["a", "b"], [], {}),
        (["a", "a"], ["w1", "w1"], {"w1": ["a"]}),
        (["t1", "t10", "t2"], ["w"], {"w": ["t1", "t10", "t2"]}),
    ],
)
def test_tables_are_dealt_round_robin(tables: list[str], workers: list[str], expected: dict[str, list[str]]) -> None:
    assert assign(tables, workers) == expected


@given(st.sets(st.text(max_size=3)), st.sets(st.text(max_size=3), min_size=1))
def test_every_table_has_one_worker_whatever_the_order(tables: set[str], workers: set[str]) -> None:
    dealt = assign(list(tables), list(workers))
    assert dealt == assign(sorted(tables, reverse=True), sorted(workers, reverse=True))
    assert sorted(table for hand in dealt.values() for table in hand) == sorted(tables)
    sizes = [len(hand) for hand in dealt.values()]
    assert max(sizes) - min(sizes) <= 1
