"""Reading the log: whole claims, what waits, what is left, what shape it has."""

from __future__ import annotations

from random import Random

import pytest

from icestream.errors import StateError
from icestream.model.cursor import Cursor
from icestream.state.cursors import Cursors
from icestream.state.database import Database
from icestream.state.log_entries import LogEntries, LogEntry, LogExtent
from support.state import ORDERS, PIPELINE, WIDER_ORDERS, LogDriver, staged

TABLE = "public.orders"
NO_LIMIT = 10**12


@pytest.fixture
def entries(state: Database) -> LogEntries:
    return LogEntries(state, PIPELINE)


def cut(entries: LogEntries, offset: int, *, max_rows: int = NO_LIMIT, max_bytes: int = NO_LIMIT) -> list[int]:
    """The end offsets of a batch."""
    return [entry.end_offset for entry in entries.after(TABLE, offset, max_rows=max_rows, max_bytes=max_bytes)]


class TestAfter:
    def test_an_empty_log_gives_nothing(self, entries: LogEntries, log: LogDriver) -> None:
        assert cut(entries, -1) == []

    def test_it_begins_after_the_offset(self, entries: LogEntries, log: LogDriver) -> None:
        for _ in range(3):
            log.claim(staged())
        assert cut(entries, -1) == cut(entries, 0) == [10, 20, 30]
        assert cut(entries, 10) == [20, 30]
        assert cut(entries, 30) == []

    @pytest.mark.parametrize(
        ("max_rows", "ends"),
        [
            (1, [10, 15]),  # the first claim is larger than the budget, and whole
            (15, [10, 15]),
            (24, [10, 15]),
            (25, [10, 15, 25]),
            (44, [10, 15, 25]),  # one of the next claim's two files would fit
            (45, [10, 15, 25, 35, 45]),
            (100, [10, 15, 25, 35, 45]),
        ],
    )
    def test_the_row_budget_never_cuts_a_claim(
        self, entries: LogEntries, log: LogDriver, max_rows: int, ends: list[int]
    ) -> None:
        log.claim(staged(), staged("public.items", 1000), staged(records=5))
        log.claim(staged())
        log.claim(staged(), staged())
        assert cut(entries, 0, max_rows=max_rows) == ends

    @pytest.mark.parametrize(
        ("max_bytes", "ends"),
        [(1, [10, 20]), (200, [10, 20]), (449, [10, 20, 30]), (450, [10, 20, 30, 40, 50]), (500, [10, 20, 30, 40, 50])],
    )
    def test_the_byte_budget_never_cuts_a_claim(
        self, entries: LogEntries, log: LogDriver, max_bytes: int, ends: list[int]
    ) -> None:
        log.claim(staged(size=100), staged(size=100))
        log.claim(staged(size=50))
        log.claim(staged(size=100), staged(size=100))
        assert cut(entries, 0, max_bytes=max_bytes) == ends

    @pytest.mark.parametrize(
        ("max_files", "ends"), [(0, [10, 20]), (1, [10, 20, 30]), (2, [10, 20, 30]), (3, [10, 20, 30, 40, 50])]
    )
    def test_the_number_of_files_never_cuts_a_claim(
        self, entries: LogEntries, log: LogDriver, max_files: int, ends: list[int]
    ) -> None:
        log.claim(staged(), staged())
        log.claim(staged())
        log.claim(staged(), staged())
        found = entries.after(TABLE, 0, max_rows=NO_LIMIT, max_bytes=NO_LIMIT, max_files=max_files)
        assert [entry.end_offset for entry in found] == ends

    def test_the_budget_counts_from_the_offset(self, entries: LogEntries, log: LogDriver) -> None:
        for _ in range(5):
            log.claim(staged(size=100))
        assert cut(entries, 20, max_rows=20) == [30, 40]
        assert cut(entries, 20, max_bytes=200) == [30, 40]

    @pytest.mark.parametrize("seed", range(5))
    def test_batches_of_any_size_join_to_the_whole_log_and_part_only_between_claims(
        self, entries: LogEntries, log: LogDriver, seed: int
    ) -> None:
        chance = Random(seed)
        for _ in range(20):
            log.claim(
                *(staged(records=chance.randint(1, 9), size=chance.randint(1, 99)) for _ in range(chance.randint(1, 4)))
            )
        whole = entries.after(TABLE, -1, max_rows=NO_LIMIT, max_bytes=NO_LIMIT)
        read: list[LogEntry] = []
        while batch := entries.after(
            TABLE,
            read[-1].end_offset if read else -1,
            max_rows=chance.randint(1, 60),
            max_bytes=chance.randint(1, 600),
            max_files=chance.randint(0, 8),
        ):
            assert not {entry.claim_id for entry in read} & {entry.claim_id for entry in batch}
            read += batch
        assert read == whole


class TestPending:
    def note(self, state: Database, log: LogDriver, offset: int, *, group: str = "default", epoch: str = "") -> None:
        cursor = Cursor(epoch or log.epoch, offset, int(log.position))
        Cursors(state, PIPELINE, group).record(TABLE, cursor, snapshot_id=1, rows=0)

    def test_a_group_without_cursor_has_everything_before_it(self, entries: LogEntries, log: LogDriver) -> None:
        log.claim(staged(size=7), staged("public.items", 3, size=5))
        log.claim(staged(size=11))
        items, orders = entries.pending("default")
        assert (items.table, items.rows, items.bytes, items.end_offset) == ("public.items", 3, 5, 3)
        assert (orders.table, orders.rows, orders.bytes, orders.end_offset) == (TABLE, 20, 18, 20)
        assert orders.waiting_s >= 0

    def test_it_counts_from_the_cursor_of_the_group(self, state: Database, entries: LogEntries, log: LogDriver) -> None:
        log.claim(staged(size=7))
        log.claim(staged(size=11))
        self.note(state, log, 10)
        (mine,), (other,) = entries.pending("default"), entries.pending("other")
        assert (mine.rows, mine.bytes) == (10, 11)
        assert (other.rows, other.bytes) == (20, 18)
        assert mine.oldest_created_at > other.oldest_created_at

    def test_a_table_that_has_caught_up_is_not_there(
        self, state: Database, entries: LogEntries, log: LogDriver
    ) -> None:
        log.claim(staged())
        self.note(state, log, 10)
        assert entries.pending("default") == []

    def test_a_cursor_of_another_epoch_counts_as_none(
        self, state: Database, entries: LogEntries, log: LogDriver
    ) -> None:
        old = log.epoch
        log.begin_epoch(log.position)
        log.claim(staged())
        self.note(state, log, 10, epoch=old)
        (pending,) = entries.pending("default")
        assert pending.rows == 10


class TestExtent:
    def test_of_a_table_without_a_log(self, entries: LogEntries, log: LogDriver) -> None:
        assert entries.extent(TABLE) == LogExtent(0, 0)

    def test_it_shrinks_from_the_front(self, state: Database, entries: LogEntries, log: LogDriver) -> None:
        log.claim(staged())
        log.claim(staged())
        assert entries.extent(TABLE) == LogExtent(0, 20)
        state.execute("DELETE FROM {schema}.log_index WHERE end_offset = 10")
        assert entries.extent(TABLE) == LogExtent(10, 20)
        state.execute("DELETE FROM {schema}.log_index")
        assert entries.extent(TABLE) == LogExtent(20, 20)


class TestRelations:
    def test_every_claimed_shape_can_be_read(self, entries: LogEntries, log: LogDriver) -> None:
        log.claim(staged(), staged(relation=WIDER_ORDERS))
        assert entries.relation(TABLE, ORDERS.version) == ORDERS
        assert entries.relation(TABLE, WIDER_ORDERS.version) == WIDER_ORDERS

    def test_the_latest_is_that_of_the_newest_rows_even_if_it_was_seen_before(
        self, entries: LogEntries, log: LogDriver
    ) -> None:
        assert TABLE not in entries.latest_relations()
        log.claim(staged(), staged(relation=WIDER_ORDERS))
        assert entries.latest_relations()[TABLE] == WIDER_ORDERS
        log.claim(staged())
        assert entries.latest_relations()[TABLE] == ORDERS

    def test_an_unknown_shape_is_an_error(self, entries: LogEntries, log: LogDriver) -> None:
        with pytest.raises(StateError, match=r"shape cafe of table public\.orders"):
            entries.relation(TABLE, "cafe")
