"""Progress of first copies: ranges are planned once, and each is noted once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from icestream.model.copying import CopyRange, WrittenFile
from icestream.model.position import Lsn
from icestream.model.table import TableName, Target
from icestream.state.copy_progress import CopyProgress, together
from icestream.state.database import Database
from icestream.state.tables import TableDefinition, Tables
from support.state import PIPELINE

ORDERS = "public.orders"
FIRST, SECOND = Lsn(1000), Lsn(2000)
FIRST_RANGE, SECOND_RANGE = range(1), range(1, 2)


def ranges(count: int, pages: int = 10) -> list[CopyRange]:
    return [CopyRange(n, 16400, n * pages, (n + 1) * pages if n + 1 < count else None, pages) for n in range(count)]


def file(name: str, records: int = 5) -> WrittenFile:
    return WrittenFile(f"/lake/{name}", 100, records)


@pytest.fixture
def tables(state: Database) -> Tables:
    tables = Tables(state, PIPELINE, "default")
    tables.sync([TableDefinition(Target("public", "orders"), TableName("public", "orders"), 16400)])
    tables.offer_copy([ORDERS], snapshot_name="s-1", position=FIRST)
    return tables


@pytest.fixture
def progress(state: Database, tables: Tables) -> CopyProgress:
    return CopyProgress(state, PIPELINE, "default")


def test_the_first_plan_stays(progress: CopyProgress) -> None:
    assert progress.plan(ORDERS, FIRST, ranges(3)) == ranges(3)
    assert progress.plan(ORDERS, FIRST, ranges(7, pages=4)) == ranges(3)


def test_workers_that_plan_at_once_get_one_plan(progress: CopyProgress) -> None:
    with ThreadPoolExecutor(6) as threads:
        plans = list(threads.map(lambda count: progress.plan(ORDERS, FIRST, ranges(count)), range(2, 8)))
    assert all(plan == plans[0] for plan in plans)


def test_a_range_is_noted_once(progress: CopyProgress) -> None:
    progress.plan(ORDERS, FIRST, ranges(2))
    assert progress.note(ORDERS, FIRST, SECOND_RANGE, [file("a"), file("b")])
    assert not progress.note(ORDERS, FIRST, SECOND_RANGE, [file("late")])
    assert [found.files for found in progress.copies(ORDERS)[FIRST]] == [None, (file("a"), file("b"))]


def test_ranges_that_were_written_together_are_noted_together(progress: CopyProgress) -> None:
    progress.plan(ORDERS, FIRST, ranges(4))
    assert progress.note(ORDERS, FIRST, range(1, 3), [file("a")])
    assert [found.files for found in progress.copies(ORDERS)[FIRST]] == [None, (file("a"),), (), None]
    assert progress.standings()[ORDERS].pages_done == 20


def test_nothing_is_noted_of_ranges_one_of_which_was_noted_before(progress: CopyProgress) -> None:
    progress.plan(ORDERS, FIRST, ranges(4))
    assert progress.note(ORDERS, FIRST, range(2, 3), [file("a")])
    assert not progress.note(ORDERS, FIRST, range(4), [file("late")])
    assert [found.files for found in progress.copies(ORDERS)[FIRST]] == [None, None, (file("a"),), None]


def test_nothing_can_be_noted_for_a_copy_that_is_forgotten(progress: CopyProgress) -> None:
    progress.plan(ORDERS, FIRST, ranges(2))
    progress.plan(ORDERS, SECOND, ranges(1))
    progress.forget(ORDERS, FIRST)
    assert not progress.note(ORDERS, FIRST, FIRST_RANGE, [file("late")])
    assert set(progress.copies(ORDERS)) == {SECOND}


def test_groups_copy_for_themselves(state: Database, progress: CopyProgress) -> None:
    progress.plan(ORDERS, FIRST, ranges(2))
    assert CopyProgress(state, PIPELINE, "audit").copies(ORDERS) == {}


def test_a_standing_counts_pages_rows_and_bytes(progress: CopyProgress) -> None:
    progress.plan(ORDERS, FIRST, ranges(4))
    assert progress.standings()[ORDERS].left_seconds is None
    progress.note(ORDERS, FIRST, FIRST_RANGE, [file("a"), file("b")])
    standing = progress.standings()[ORDERS]
    assert (standing.pages, standing.pages_done, standing.rows, standing.bytes) == (40, 10, 10, 200)
    assert (standing.ratio, standing.left_seconds) == (0.25, pytest.approx(3 * standing.seconds))


def test_copies_at_other_snapshots_are_not_counted(tables: Tables, progress: CopyProgress) -> None:
    progress.plan(ORDERS, FIRST, ranges(4))
    assert tables.give_up_copy(ORDERS, position=FIRST)
    assert not tables.give_up_copy(ORDERS, position=FIRST), "it waits already"
    tables.offer_copy([ORDERS], snapshot_name="s-2", position=SECOND)
    assert progress.standings() == {}
    assert not tables.give_up_copy(ORDERS, position=FIRST), "it is copied at another one"


def test_all_copies_together(progress: CopyProgress) -> None:
    progress.plan(ORDERS, FIRST, ranges(4))
    progress.note(ORDERS, FIRST, FIRST_RANGE, [file("a")])
    one = progress.standings()[ORDERS]
    both = together([one, one])
    assert both is not None
    assert (both.pages, both.rows, both.ratio) == (80, 10, 0.25)
    assert together([]) is None


def test_an_empty_table_is_done_when_its_range_is(progress: CopyProgress) -> None:
    progress.plan(ORDERS, FIRST, ranges(1, pages=0))
    assert progress.standings()[ORDERS].ratio == 0
    progress.note(ORDERS, FIRST, FIRST_RANGE, [])
    assert progress.standings()[ORDERS].ratio == 1
