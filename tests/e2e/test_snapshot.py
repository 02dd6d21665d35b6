"""`icestream snapshot`: it copies, ends, and leaves everything else to a later run."""

from __future__ import annotations

from icestream.model.table import TableState
from support.shop import Shop


def test_snapshot_copies_and_ends_and_a_later_run_goes_on(shop: Shop) -> None:
    said = shop.processes.run("snapshot")
    assert shop.states() == dict.fromkeys(shop.keys, TableState.LIVE), said
    assert "Traceback" not in said
    shop.assert_mirrored()
    shop.change()
    shop.processes.run("run", "--snapshot-only")
    assert shop.pipeline.query(f"SELECT max(id) FROM {shop.keys[0]}") == [(40,)], "only copies were asked for"
    with shop.pipeline.capturing():
        shop.bring_forward()
    shop.assert_mirrored()


def test_snapshot_says_which_table_it_could_not_copy(shop: Shop) -> None:
    customers, orders = shop.keys
    shop.pipeline.query(f"CREATE NAMESPACE {shop.namespace}")
    shop.pipeline.query(f"CREATE TABLE {customers} AS SELECT 1 AS id, 'somebody else wrote this' AS name")
    said = shop.processes.run("snapshot", code=1)
    assert "not copied" in said and customers in said
    assert shop.states() == {customers: TableState.PARKED, orders: TableState.LIVE}
