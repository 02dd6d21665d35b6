"""Where each table stands, who may change it from what to what."""

from __future__ import annotations

import pytest

from icestream.model.position import Lsn
from icestream.model.table import TableName, TableState, Target
from icestream.state.database import Database
from icestream.state.tables import TableDefinition, TableRow, Tables
from support.state import PIPELINE, LogDriver

ORDERS = TableDefinition(Target("shop", "orders"), TableName("public", "orders"), 16400)
ITEMS = TableDefinition(
    Target("shop", "items", primary_key=("a", "b"), properties={"x": "y"}), TableName("public", "It.ems"), 16401
)
UNCOPIED = TableDefinition(Target("shop", "events", skip_snapshot=True), TableName("public", "events"), 16402)
KEY = "shop.orders"


@pytest.fixture
def tables(state: Database) -> Tables:
    return Tables(state, PIPELINE)


def state_of(tables: Tables, key: str = KEY) -> TableState:
    row = tables.get(key)
    assert row is not None
    return row.state


def make(tables: Tables, state: TableState) -> None:
    """Brings the table of ORDERS into a state, by the calls that lead there."""
    tables.sync([ORDERS])
    if state in (TableState.COPYING, TableState.LIVE):
        tables.offer_copy([KEY], snapshot_name="s", position=Lsn(500))
    if state is TableState.LIVE:
        tables.complete_copy(KEY, position=Lsn(500), rows=1)
    if state is TableState.PARKED:
        tables.park(KEY, "first reason")
    if state is TableState.REMOVED:
        tables.sync([])
    assert state_of(tables) is state


class TestSync:
    def test_new_tables_wait_for_a_copy_unless_they_skip_it(self, tables: Tables) -> None:
        rows = tables.sync([ORDERS, UNCOPIED, ITEMS])
        assert {row.key: row.state for row in rows} == {
            "shop.events": TableState.LIVE,
            "shop.items": TableState.PENDING,
            "shop.orders": TableState.PENDING,
        }
        assert not any(row.snapshot_complete for row in rows)
        assert rows == tables.all()

    def test_a_row_keeps_the_whole_definition(self, tables: Tables) -> None:
        (row,) = tables.sync([ITEMS])
        assert TableDefinition(row.target, row.source, row.pg_oid) == ITEMS

    def test_repeating_it_changes_no_state(self, tables: Tables) -> None:
        make(tables, TableState.LIVE)
        (row,) = tables.sync([ORDERS])
        assert (row.state, row.snapshot_complete, row.snapshot_lsn) == (TableState.LIVE, True, Lsn(500))

    def test_a_copy_under_way_is_left_alone(self, tables: Tables) -> None:
        make(tables, TableState.COPYING)
        (row,) = tables.sync([ORDERS])
        assert (row.state, row.snapshot_name) == (TableState.COPYING, "s")

    def test_changed_settings_are_taken_over(self, tables: Tables) -> None:
        make(tables, TableState.LIVE)
        changed = TableDefinition(Target("shop", "orders", format_version=2), ORDERS.source, ORDERS.pg_oid)
        (row,) = tables.sync([changed])
        assert (row.state, row.target) == (TableState.LIVE, changed.target)

    def test_a_table_that_left_the_settings_is_removed_and_copied_again_when_it_returns(self, tables: Tables) -> None:
        make(tables, TableState.LIVE)
        tables.sync([ITEMS])
        assert state_of(tables) is TableState.REMOVED
        returned = TableDefinition(ORDERS.target, ORDERS.source, 99)
        tables.sync([returned, ITEMS])
        row = tables.get(KEY)
        assert row is not None
        assert (row.state, row.pg_oid, row.snapshot_complete) == (TableState.PENDING, 99, False)

    def test_a_table_that_was_dropped_and_created_again_is_parked(self, tables: Tables) -> None:
        make(tables, TableState.LIVE)
        recreated = TableDefinition(ORDERS.target, ORDERS.source, 17000)
        (row,) = tables.sync([recreated])
        assert row.state is TableState.PARKED
        assert row.reason == "table was dropped and created again (oid 16400 → 17000)"
        assert row.hint is not None
        assert "icestream resync shop.orders" in row.hint

        assert tables.sync([recreated])[0].reason == row.reason
        tables.request_copy(KEY)
        assert tables.sync([recreated])[0].state is TableState.PENDING

    def test_a_table_without_copy_that_was_left_out_for_a_while_is_parked(self, tables: Tables, log: LogDriver) -> None:
        tables.sync([UNCOPIED])
        tables.sync([])
        (row,) = tables.sync([UNCOPIED])
        assert row.state is TableState.PARKED
        assert row.reason is not None
        assert "not replicated for a while" in row.reason
        assert row.hint is not None
        assert row.hint.startswith("drop the Iceberg table shop.events, then run `icestream resync shop.events`")
        assert tables.sync([UNCOPIED])[0].reason == row.reason

    def test_pipelines_have_their_own_tables(self, state: Database, tables: Tables) -> None:
        tables.sync([ORDERS])
        assert Tables(state, "other").sync([ITEMS])[0].key == "shop.items"
        assert state_of(tables) is TableState.PENDING


class TestCopy:
    def test_the_way_of_a_copy(self, tables: Tables) -> None:
        tables.sync([ORDERS, ITEMS])
        assert tables.offer_copy([KEY], snapshot_name="00000003-1", position=Lsn(500)) == [KEY]
        row = tables.get(KEY)
        assert row is not None
        assert (row.state, row.snapshot_name, row.snapshot_lsn) == (TableState.COPYING, "00000003-1", Lsn(500))

        assert tables.complete_copy(KEY, position=Lsn(500), rows=42)
        row = tables.get(KEY)
        assert row is not None
        assert (row.state, row.snapshot_name, row.snapshot_complete) == (TableState.LIVE, None, True)
        assert (row.snapshot_lsn, row.copy_rows) == (Lsn(500), 42)
        assert row.completed_at is not None
        assert state_of(tables, "shop.items") is TableState.PENDING

    def test_a_lost_snapshot_is_withdrawn_and_offered_anew(self, tables: Tables) -> None:
        make(tables, TableState.COPYING)
        assert tables.withdraw_copies() == [KEY]
        assert state_of(tables) is TableState.PENDING
        assert tables.offer_copy([KEY], snapshot_name="t", position=Lsn(600)) == [KEY]

    def test_a_copy_that_had_read_a_lost_snapshot_still_counts(self, tables: Tables) -> None:
        make(tables, TableState.COPYING)
        tables.withdraw_copies()
        tables.offer_copy([KEY], snapshot_name="t", position=Lsn(600))
        assert tables.complete_copy(KEY, position=Lsn(500), rows=1)
        row = tables.get(KEY)
        assert row is not None
        assert row.snapshot_lsn == Lsn(500)

    def test_a_copy_from_before_a_resync_does_not_count(self, tables: Tables, log: LogDriver) -> None:
        make(tables, TableState.COPYING)
        tables.request_copy(KEY)  # the log reaches 1000 by now
        assert not tables.complete_copy(KEY, position=Lsn(1000), rows=1)
        assert state_of(tables) is TableState.PENDING
        assert tables.complete_copy(KEY, position=Lsn(1001), rows=1)

    def test_a_copy_that_is_ahead_of_the_log_does_not_answer_a_later_demand(
        self, tables: Tables, log: LogDriver
    ) -> None:
        make(tables, TableState.COPYING)
        tables.withdraw_copies()
        tables.offer_copy([KEY], snapshot_name="t", position=Lsn(1200))  # the log reaches 1000
        tables.complete_copy(KEY, position=Lsn(1200), rows=1)
        tables.request_copy(KEY)
        assert not tables.complete_copy(KEY, position=Lsn(1200), rows=1)
        tables.offer_copy([KEY], snapshot_name="u", position=Lsn(1300))
        tables.sync([])
        tables.sync([ORDERS])
        assert not tables.complete_copy(KEY, position=Lsn(1300), rows=1)
        assert tables.complete_copy(KEY, position=Lsn(1301), rows=1)

    def test_a_snapshot_from_before_the_demand_is_not_offered(self, tables: Tables, log: LogDriver) -> None:
        make(tables, TableState.LIVE)
        tables.request_copy(KEY)
        assert tables.offer_copy([KEY], snapshot_name="t", position=Lsn(1000)) == []
        assert state_of(tables) is TableState.PENDING
        assert tables.offer_copy([KEY], snapshot_name="u", position=Lsn(1001)) == [KEY]

    def test_demands_can_be_met_in_an_epoch_with_lower_positions(self, tables: Tables, log: LogDriver) -> None:
        make(tables, TableState.LIVE)
        tables.request_copy(KEY)
        log.begin_epoch(Lsn(100))
        tables.request_copy(KEY)
        assert tables.offer_copy([KEY], snapshot_name="t", position=Lsn(101)) == [KEY]

    def test_a_copy_from_before_a_removal_does_not_count(self, tables: Tables, log: LogDriver) -> None:
        make(tables, TableState.COPYING)
        tables.sync([])
        tables.sync([ORDERS])
        assert not tables.complete_copy(KEY, position=Lsn(999), rows=1)

    def test_a_table_without_copy_begins_anew_at_the_offered_position(self, tables: Tables, log: LogDriver) -> None:
        tables.sync([UNCOPIED])
        tables.request_copy("shop.events")
        assert state_of(tables, "shop.events") is TableState.PENDING
        assert tables.offer_copy(["shop.events"], snapshot_name="s", position=Lsn(1500)) == ["shop.events"]
        row = tables.get("shop.events")
        assert row is not None
        assert (row.state, row.snapshot_name, row.snapshot_complete) == (TableState.LIVE, None, False)
        assert (row.snapshot_lsn, row.requested_lsn) == (Lsn(1500), Lsn(1000))


ALLOWED = {
    "offer": {TableState.PENDING: TableState.COPYING},
    "withdraw": {TableState.COPYING: TableState.PENDING},
    "complete": {TableState.PENDING: TableState.LIVE, TableState.COPYING: TableState.LIVE},
    "park": dict.fromkeys((TableState.PENDING, TableState.COPYING, TableState.LIVE), TableState.PARKED),
    "request": dict.fromkeys(set(TableState) - {TableState.REMOVED}, TableState.PENDING),
}
EVENTS = {
    "offer": lambda tables: tables.offer_copy([KEY], snapshot_name="s", position=Lsn(600)),
    "withdraw": lambda tables: tables.withdraw_copies(),
    "complete": lambda tables: tables.complete_copy(KEY, position=Lsn(500), rows=1),
    "park": lambda tables: tables.park(KEY, "second reason"),
    "request": lambda tables: tables.request_copy(KEY),
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("before", TableState)
def test_every_event_in_every_state(tables: Tables, before: TableState, event: str) -> None:
    make(tables, before)
    after = ALLOWED[event].get(before)
    assert bool(EVENTS[event](tables)) is (after is not None)
    assert state_of(tables) is (after or before)


def test_the_first_reason_of_a_parked_table_stays_until_a_resync(tables: Tables) -> None:
    make(tables, TableState.PARKED)
    tables.park(KEY, "second reason", "hint")
    row = tables.get(KEY)
    assert row is not None
    assert row.reason == "first reason"
    tables.request_copy(KEY)
    row = tables.get(KEY)
    assert row is not None
    assert (row.reason, row.hint) == (None, None)


def test_unknown_tables_are_told(tables: Tables) -> None:
    assert tables.get("no.such") is None
    assert not tables.request_copy("no.such")
    assert not tables.park("no.such", "reason")


class TestLatePark:
    """A worker parks for what it has seen; what was decided since then stays."""

    def seen(self, tables: Tables) -> TableRow:
        row = tables.get(KEY)
        assert row is not None
        return row

    @pytest.mark.parametrize("before", [TableState.PENDING, TableState.COPYING, TableState.LIVE])
    def test_what_stands_as_it_was_seen_is_parked(self, tables: Tables, before: TableState) -> None:
        make(tables, before)
        assert tables.park(KEY, "reason", seen=self.seen(tables))
        assert state_of(tables) is TableState.PARKED

    def test_a_resync_is_not_undone(self, tables: Tables, log: LogDriver) -> None:
        make(tables, TableState.LIVE)
        seen = self.seen(tables)
        tables.request_copy(KEY)
        assert not tables.park(KEY, "reason", seen=seen)
        assert state_of(tables) is TableState.PENDING

    def test_a_finished_new_copy_is_not_undone(self, tables: Tables, log: LogDriver) -> None:
        make(tables, TableState.LIVE)
        seen = self.seen(tables)
        tables.request_copy(KEY)
        tables.complete_copy(KEY, position=Lsn(1001), rows=1)
        assert not tables.park(KEY, "reason", seen=seen)
        assert state_of(tables) is TableState.LIVE

    def test_a_newer_offer_is_not_undone(self, tables: Tables) -> None:
        make(tables, TableState.COPYING)
        seen = self.seen(tables)
        tables.withdraw_copies()
        tables.offer_copy([KEY], snapshot_name="t", position=Lsn(600))
        assert not tables.park(KEY, "reason", seen=seen)

    def test_a_noted_failure_is_no_decision(self, tables: Tables) -> None:
        make(tables, TableState.LIVE)
        seen = self.seen(tables)
        tables.note_failure(KEY, "no answer")
        assert tables.park(KEY, "reason", seen=seen)


class TestFailures:
    def noted(self, tables: Tables) -> tuple[int, str | None]:
        row = tables.get(KEY)
        assert row is not None
        return row.failures, row.last_failure

    def test_they_are_counted_until_it_works_again(self, tables: Tables) -> None:
        make(tables, TableState.LIVE)
        assert self.noted(tables) == (0, None)
        for text in ("first", "second"):
            assert tables.note_failure(KEY, text)
        assert self.noted(tables) == (2, "second")
        assert state_of(tables) is TableState.LIVE
        assert tables.clear_failures(KEY)
        assert self.noted(tables) == (0, None)
        assert not tables.clear_failures(KEY)

    def test_a_finished_copy_clears_them(self, tables: Tables) -> None:
        make(tables, TableState.COPYING)
        tables.note_failure(KEY, "snapshot gone")
        tables.complete_copy(KEY, position=Lsn(500), rows=1)
        assert self.noted(tables) == (0, None)
