"""While one table is copied, the others live on, and the slot does not grow."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from icestream.materialize.range_copy import RangeCopy
from icestream.model.position import Lsn
from icestream.model.table import TableState
from support.processes import write_settings
from support.shop import Shop
from support.waiting import wait_for
from support.working import working


def test_tables_are_live_and_applied_while_another_is_copied(
    shop: Shop, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    customers, orders = shop.keys
    write_settings(shop.processes.settings, shop.pipeline, warehouse, materializer_concurrency="1")
    may_go_on, write = threading.Event(), RangeCopy.write

    def write_late(copy: RangeCopy, *arguments: Any) -> Any:
        assert copy._table == customers or may_go_on.wait(120)
        return write(copy, *arguments)

    monkeypatch.setattr(RangeCopy, "write", write_late)
    with shop.pipeline.capturing(), working(shop):
        wait_for(lambda: shop.states()[customers] is TableState.LIVE, "one table to be live")
        shop.change()
        shop.pipeline.wait_until_captured()
        wait_for(lambda: customers not in _pending(shop), "its changes to be applied")
        assert shop.states()[orders] is TableState.COPYING
        assert orders in _pending(shop), "its changes wait in the log"
        flushed = shop.pipeline.index.flushed()
        assert flushed is not None
        wait_for(lambda: _confirmed(shop) >= flushed.position, what="the slot to be acknowledged")
        may_go_on.set()
        shop.wait_until_applied()
    shop.assert_mirrored()


def _pending(shop: Shop) -> set[str]:
    return {waiting.table for waiting in shop.pipeline.entries.pending(shop.pipeline.owner.group)}


def _confirmed(shop: Shop) -> Lsn:
    row = shop.pipeline.source.execute(
        "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s",
        [shop.pipeline.settings.source.logical.slot_name],
    ).fetchone()
    return Lsn.parse(row[0]) if row else Lsn(0)
