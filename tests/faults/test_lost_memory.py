"""What was remembered is gone or old: the tables are right, or they are parked and say why.

A parked table comes back by `icestream resync`.
"""

from __future__ import annotations

import psycopg
import pytest

from icestream.lake.history import CURSOR
from icestream.model.table import TableState
from support.postgres_tools import dump_schema, restore_schema
from support.shop import Shop
from support.waiting import wait_for
from support.working import working

_END_READER = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s AND active"


class StateCopy:
    """The coordination schema as it is now, for later."""

    def __init__(self, shop: Shop) -> None:
        self._conninfo = shop.pipeline.conninfo
        self._schema = shop.pipeline.settings.state.coordinator_schema
        self._dump = dump_schema(self._conninfo, self._schema)

    def restore(self) -> None:
        restore_schema(self._conninfo, self._schema, self._dump)


def test_expired_snapshots_leave_the_property_to_go_on_from(shop: Shop) -> None:
    with shop.pipeline.capturing():
        shop.pipeline.bring_forward()
        _rewrite_and_expire(shop, shop.keys[0])
        shop.change()
        shop.bring_forward()
    shop.assert_mirrored()


def test_a_table_that_lost_its_cursor_is_parked_and_the_others_go_on(shop: Shop) -> None:
    customers, orders = shop.keys
    with shop.pipeline.capturing():
        shop.pipeline.bring_forward()
        _rewrite_and_expire(shop, customers)
        shop.pipeline.query(f"ALTER TABLE {customers} UNSET TBLPROPERTIES ('{CURSOR}')")
        with working(shop):
            shop.change()
            wait_for(lambda: shop.states()[customers] is TableState.PARKED, what="the table to be parked")
            assert "no cursor" in str(shop.reasons()[customers])
            assert shop.states()[orders] is TableState.LIVE
            shop.processes.run("resync", customers)
            shop.wait_until_applied()
    shop.assert_mirrored()


def test_state_restored_from_an_older_copy_stops_capture_and_parks_the_tables(shop: Shop) -> None:
    shop.go_live()
    older = StateCopy(shop)
    shop.change()
    with shop.pipeline.capturing():
        shop.bring_forward()
    older.restore()
    said = shop.processes.run("stream-only", code=1)
    assert "the state was restored from an older copy" in said
    _assert_all_parked(shop, "older copy")
    _resync_everything(shop)


def test_state_restored_under_a_running_capture_is_noticed_before_anything_is_claimed(shop: Shop) -> None:
    shop.go_live()
    older = StateCopy(shop)
    capture = shop.processes.capture()
    capture.wait_for_output("streaming")
    shop.change()
    shop.pipeline.wait_until_captured()
    older.restore()
    shop.change()
    assert capture.wait_for_end() == 1, capture.output
    shop.processes.run("stream-only", code=1)
    _assert_all_parked(shop, "older copy")


def test_a_table_that_is_beyond_the_end_of_a_restored_log_is_parked(shop: Shop) -> None:
    shop.go_live()
    shop.change()
    with shop.pipeline.capturing():
        shop.pipeline.wait_until_captured()
    older = StateCopy(shop)
    shop.change()
    with shop.pipeline.capturing():
        shop.bring_forward()
    older.restore()
    with working(shop):
        wait_for(lambda: set(shop.states().values()) == {TableState.PARKED}, what="the tables to be parked")
    _assert_all_parked(shop, "beyond the log's end")


def test_an_older_cache_of_cursors_does_no_harm(shop: Shop) -> None:
    shop.go_live()
    shop.pipeline.db.execute("CREATE TABLE {schema}.older AS TABLE {schema}.mat_cursor")
    shop.change()
    with shop.pipeline.capturing():
        shop.bring_forward()
        shop.pipeline.db.execute("DELETE FROM {schema}.mat_cursor")
        shop.pipeline.db.execute("INSERT INTO {schema}.mat_cursor TABLE {schema}.older")
        shop.change()
        shop.bring_forward()
    shop.assert_mirrored()


@pytest.mark.parametrize("made_anew", [True, False], ids=["made anew", "dropped"])
def test_a_slot_that_is_gone_stops_capture_and_parks_the_tables(shop: Shop, made_anew: bool) -> None:
    shop.go_live()
    _drop_slot(shop)
    shop.change()
    if made_anew:
        slot = shop.pipeline.settings.source.logical.slot_name
        shop.pipeline.execute(f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    said = shop.processes.run("stream-only", code=1)
    reason = "moved or made anew" if made_anew else "is gone"
    assert reason in said and "icestream resync" in said
    _assert_all_parked(shop, reason)
    _resync_everything(shop)


def test_a_slot_that_is_dropped_during_the_run_ends_capture_with_the_reason(shop: Shop) -> None:
    shop.go_live()
    capture = shop.processes.capture()
    capture.wait_for_output("streaming")
    _drop_slot(shop)
    assert capture.wait_for_end() == 1, capture.output
    assert "is gone" in capture.output and "Traceback" not in capture.output
    _assert_all_parked(shop, "is gone")


def _rewrite_and_expire(shop: Shop, key: str) -> None:
    """What table care by somebody else may do: afterwards no snapshot of ours is left."""
    catalog = shop.pipeline.settings.sink.catalog_name
    shop.pipeline.query(
        f"CALL {catalog}.system.rewrite_data_files(table => '{key}', options => map('rewrite-all', 'true'))"
    )
    shop.pipeline.query(
        f"CALL {catalog}.system.expire_snapshots(table => '{key}', older_than => TIMESTAMP '2200-01-01 00:00:00',"
        " retain_last => 1)"
    )
    summaries = shop.pipeline.query(f"SELECT summary FROM {key}.snapshots")
    assert [summary for (summary,) in summaries if CURSOR in summary] == []


def _drop_slot(shop: Shop) -> None:
    """As somebody would who wants the space back: readers are ended until it works."""
    slot = shop.pipeline.settings.source.logical.slot_name

    def dropped() -> bool:
        shop.pipeline.source.execute(_END_READER, [slot])
        try:
            shop.pipeline.source.execute("SELECT pg_drop_replication_slot(%s)", [slot])
        except psycopg.errors.ObjectInUse:
            return False
        return True

    wait_for(dropped, what=f"slot {slot} to be dropped")


def _assert_all_parked(shop: Shop, reason: str) -> None:
    assert shop.states() == dict.fromkeys(shop.keys, TableState.PARKED)
    assert all(reason in str(found) for found in shop.reasons().values()), shop.reasons()


def _resync_everything(shop: Shop) -> None:
    said = shop.processes.run("resync", *shop.keys)
    assert said.count("will be copied anew") == 2
    capture = shop.processes.capture()
    shop.bring_forward()
    shop.change()
    shop.bring_forward()
    capture.stop()
    shop.assert_mirrored()
