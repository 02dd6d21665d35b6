"""Every group has tables of its own, made from one log, whoever of capture and workers comes first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from icestream.model.position import Lsn
from icestream.model.table import TableName, TableState, Target
from icestream.state.database import Database
from icestream.state.groups import Groups
from icestream.state.tables import TableDefinition, TableRow, Tables
from support.state import PIPELINE, LogDriver, fill_every_table, tables_with_rows

ORDERS = TableDefinition(Target("shop", "orders", primary_key=("id",)), TableName("public", "orders"), 16400)
ITEMS = TableDefinition(Target("shop", "items"), TableName("public", "items"), 16401)
KEY = "shop.orders"


def to_audit(source: TableName) -> Target:
    return Target("audit", source.name)


def to_audit_without_copy(source: TableName) -> Target:
    return Target("audit", source.name, skip_snapshot=True)


def nowhere(source: TableName) -> Target | None:
    return None


@pytest.fixture
def capture(state: Database) -> Tables:
    return Tables(state, PIPELINE)


@pytest.fixture
def default(state: Database) -> Tables:
    return Tables(state, PIPELINE, "default")


@pytest.fixture
def audit(state: Database) -> Tables:
    return Tables(state, PIPELINE, "audit")


@pytest.fixture
def groups(state: Database) -> Groups:
    return Groups(state, PIPELINE)


def row_of(tables: Tables, key: str = KEY) -> TableRow:
    row = tables.get(key)
    assert row is not None
    return row


def states(tables: Tables) -> dict[tuple[str, str], TableState]:
    return {(row.group, row.key): row.state for row in tables.all()}


def go_live(tables: Tables) -> None:
    """The copies of all tables of a group."""
    for row in tables.all():
        assert tables.complete_copy(row.key, position=Lsn(2000), rows=1)


class TestJoining:
    def test_a_group_that_joins_later_gets_copies_of_its_own(
        self, capture: Tables, default: Tables, audit: Tables, groups: Groups
    ) -> None:
        capture.sync([ORDERS, ITEMS])
        go_live(default)
        groups.register("audit")
        audit.adopt(to_audit)
        assert {row.key: row.target.key for row in audit.all()} == {KEY: "audit.orders", "shop.items": "audit.items"}
        assert capture.offer_copy([KEY, "shop.items"], snapshot_name="s", position=Lsn(500)) == ["shop.items", KEY]
        assert audit.complete_copy(KEY, position=Lsn(500), rows=1)
        assert states(capture) == {
            ("default", KEY): TableState.LIVE,
            ("default", "shop.items"): TableState.LIVE,
            ("audit", KEY): TableState.LIVE,
            ("audit", "shop.items"): TableState.COPYING,
        }

    def test_a_group_may_be_there_before_capture(
        self, capture: Tables, default: Tables, audit: Tables, groups: Groups
    ) -> None:
        groups.register("audit")
        audit.adopt(to_audit, anew=True)
        capture.sync([ORDERS])
        audit.adopt(to_audit)
        assert [row_of(tables).target.key for tables in (default, audit)] == ["shop.orders", "audit.orders"]

    def test_nobody_works_on_a_table_before_its_group_has_said_where_it_goes(
        self, capture: Tables, audit: Tables, groups: Groups
    ) -> None:
        capture.sync([ORDERS])
        groups.register("audit")
        assert audit.all() == []
        assert [row.group for row in capture.all()] == ["default"]
        capture.offer_copy([KEY], snapshot_name="s", position=Lsn(500))
        audit.adopt(to_audit)
        assert row_of(audit).state is TableState.PENDING

    def test_capture_names_its_own_group(self, capture: Tables, groups: Groups) -> None:
        (row,) = capture.sync([ORDERS], ["night"])
        assert (row.group, groups.names()) == ("night", ["night"])

    def test_a_table_that_is_new_comes_to_every_group(
        self, capture: Tables, default: Tables, audit: Tables, groups: Groups
    ) -> None:
        capture.sync([ORDERS])
        groups.register("audit")
        audit.adopt(to_audit)
        capture.sync([ORDERS, ITEMS])
        audit.adopt(to_audit)
        assert set(states(capture)) == {(group, key) for group in ("default", "audit") for key in (KEY, "shop.items")}

    def test_groups_and_tables_that_come_at_once_find_each_other(self, state: Database) -> None:
        names = [f"g{number}" for number in range(4)]

        def join(name: str) -> None:
            Groups(state, PIPELINE).register(name)

        def begin(_: str) -> None:
            Tables(state, PIPELINE).sync([ORDERS, ITEMS])

        with ThreadPoolExecutor(8) as threads:
            both = [threads.submit(task, name) for name in names for task in (join, begin)]
        for each in both:
            each.result()
        for name in names:
            tables = Tables(state, PIPELINE, name)
            tables.adopt(to_audit)
            assert len(tables.all()) == 2

    def test_a_removed_group_is_forgotten(self, capture: Tables, audit: Tables, groups: Groups) -> None:
        capture.sync([ORDERS])
        groups.register("audit")
        audit.adopt(to_audit)
        groups.remove("audit")
        assert audit.all() == []
        assert [row.group for row in capture.sync([ORDERS])] == ["default"]

    def test_no_table_keeps_a_row_of_a_removed_group(self, state: Database, groups: Groups) -> None:
        for group in ("default", "audit"):
            fill_every_table(state, PIPELINE, group)
        state.execute("UPDATE {schema}.consumer SET expires_at = now() - interval '1 second'")
        filled = tables_with_rows(state, PIPELINE, "audit")
        assert filled >= {"log_group", "tables", "mat_cursor", "consumer", "letter_move", "snapshot_progress"}
        groups.remove("audit")
        assert tables_with_rows(state, PIPELINE, "audit") == set()
        assert tables_with_rows(state, PIPELINE, "default") == filled


class TestTargets:
    @pytest.fixture(autouse=True)
    def both(self, capture: Tables, default: Tables, audit: Tables, groups: Groups, log: LogDriver) -> None:
        """Two groups with a live table."""
        capture.sync([ORDERS])
        groups.register("audit")
        audit.adopt(to_audit)
        go_live(default)
        go_live(audit)

    def test_the_key_that_capture_found_is_taken_over(self, audit: Tables) -> None:
        assert row_of(audit).target == Target("audit", "orders", primary_key=("id",))

    def test_captures_settings_do_not_change_those_of_another_group(
        self, capture: Tables, default: Tables, audit: Tables
    ) -> None:
        before = row_of(audit)
        target = msgspec.structs.replace(ORDERS.target, format_version=2)
        capture.sync([TableDefinition(target, ORDERS.source, ORDERS.pg_oid)])
        assert row_of(default).target.format_version == 2
        assert (row_of(audit).target, row_of(audit).state) == (before.target, TableState.LIVE)

    def test_another_key_in_the_source_comes_to_every_group(
        self, capture: Tables, default: Tables, audit: Tables
    ) -> None:
        target = msgspec.structs.replace(ORDERS.target, primary_key=("a", "b"))
        capture.sync([TableDefinition(target, ORDERS.source, ORDERS.pg_oid)])
        assert audit.get(KEY) is None
        audit.adopt(to_audit)
        assert (row_of(audit).target.primary_key, row_of(audit).target.key) == (("a", "b"), "audit.orders")
        assert row_of(audit).state is TableState.LIVE

    def test_changed_settings_of_a_group_are_taken_over_when_its_worker_starts(self, audit: Tables) -> None:
        def changed(source: TableName) -> Target:
            return Target("audit", source.name, properties={"x": "y"})

        audit.adopt(changed)
        assert row_of(audit).target.properties == {}
        audit.adopt(changed, anew=True)
        assert row_of(audit).target.properties == {"x": "y"}
        assert row_of(audit).state is TableState.LIVE

    def test_saying_the_same_again_is_no_decision(self, audit: Tables) -> None:
        before = row_of(audit)
        audit.adopt(to_audit, anew=True)
        assert row_of(audit) == before

    def test_workers_of_captures_group_leave_its_tables_alone(self, default: Tables) -> None:
        before = row_of(default)
        default.adopt(nowhere, anew=True)
        assert row_of(default) == before

    def test_a_table_that_a_group_does_not_want_is_removed_there_only(
        self, capture: Tables, default: Tables, audit: Tables
    ) -> None:
        audit.adopt(nowhere, anew=True)
        capture.sync([ORDERS])
        audit.adopt(nowhere)
        assert (row_of(audit).state, row_of(default).state) == (TableState.REMOVED, TableState.LIVE)

        audit.adopt(to_audit, anew=True)
        row = row_of(audit)
        assert (row.state, row.requested_lsn, row.snapshot_complete) == (TableState.PENDING, Lsn(2000), False)

    def test_a_table_that_capture_removed_stays_so_until_it_returns(self, capture: Tables, audit: Tables) -> None:
        audit.adopt(nowhere, anew=True)
        capture.sync([])
        audit.adopt(to_audit, anew=True)
        assert audit.all() == []
        capture.sync([ORDERS])
        audit.adopt(to_audit)
        assert (row_of(audit).state, row_of(audit).requested_lsn) == (TableState.PENDING, Lsn(2000))

    def test_the_group_of_capture_may_change(self, capture: Tables, default: Tables, audit: Tables) -> None:
        capture.sync([ORDERS], ["audit"])
        assert row_of(audit).target.key == "shop.orders"
        assert default.all() == []
        default.adopt(lambda source: Target("other", source.name))
        assert (row_of(default).target.key, row_of(default).state) == ("other.orders", TableState.LIVE)


class TestWithoutCopy:
    def test_a_new_group_begins_without_rows_if_it_wants_none(
        self, capture: Tables, default: Tables, audit: Tables, groups: Groups
    ) -> None:
        capture.sync([ORDERS])
        groups.register("audit")
        audit.adopt(to_audit_without_copy)
        assert (row_of(audit).state, row_of(default).state) == (TableState.LIVE, TableState.PENDING)

    def test_a_table_that_returns_is_parked(
        self, capture: Tables, audit: Tables, groups: Groups, log: LogDriver
    ) -> None:
        capture.sync([ORDERS])
        groups.register("audit")
        audit.adopt(to_audit_without_copy)
        capture.sync([])
        capture.sync([ORDERS])
        audit.adopt(to_audit_without_copy)
        row = row_of(audit)
        assert row.state is TableState.PARKED
        assert row.hint is not None
        assert row.hint.startswith("drop the Iceberg table audit.orders, then run `icestream resync shop.orders`")


class TestSharedDecisions:
    @pytest.fixture(autouse=True)
    def both(self, capture: Tables, audit: Tables, groups: Groups) -> None:
        capture.sync([ORDERS])
        groups.register("audit")
        audit.adopt(to_audit)

    def test_capture_parks_a_table_for_all_groups(self, capture: Tables) -> None:
        assert capture.park(KEY, "gone")
        assert set(states(capture).values()) == {TableState.PARKED}

    def test_capture_may_park_what_it_saw_of_one_group(self, capture: Tables, default: Tables, audit: Tables) -> None:
        assert capture.park(KEY, "gone", seen=row_of(default))
        assert (row_of(default).state, row_of(audit).state) == (TableState.PARKED, TableState.PENDING)

    def test_a_group_decides_for_itself(self, default: Tables, audit: Tables) -> None:
        assert audit.park(KEY, "reason")
        assert audit.note_failure(KEY, "failed")
        assert (row_of(default).state, row_of(default).failures) == (TableState.PENDING, 0)
        assert audit.request_copy(KEY)
        assert default.park(KEY, "reason")
        assert row_of(audit).state is TableState.PENDING

    def test_a_lost_snapshot_is_withdrawn_from_all(self, capture: Tables) -> None:
        assert capture.offer_copy([KEY], snapshot_name="s", position=Lsn(500)) == [KEY]
        assert capture.withdraw_copies() == [KEY]
        assert set(states(capture).values()) == {TableState.PENDING}

    def test_a_table_that_was_made_anew_is_parked_for_all(self, capture: Tables, audit: Tables) -> None:
        capture.sync([TableDefinition(ORDERS.target, ORDERS.source, 17000)])
        assert set(states(capture).values()) == {TableState.PARKED}
        assert row_of(audit).target.key == "audit.orders"
