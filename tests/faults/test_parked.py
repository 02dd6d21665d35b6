"""A table that a worker had to park, for as long as its log is kept."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from icestream.errors import StateLimit
from icestream.model.table import TableState
from icestream.runtime.resume import resume_tables
from icestream.state.dead_letters import DeadLetter, DeadLetters
from icestream.state.retention import Retention
from support.shop import Shop
from support.waiting import wait_for
from support.working import working


def test_a_resumed_table_takes_in_everything_that_happened_while_it_was_parked(shop: Shop) -> None:
    customers, orders = shop.keys
    pipeline = shop.pipeline
    shop.go_live()
    pipeline.tables.park(customers, "no right", seen=pipeline.tables.get(customers), is_resumable=True)
    with pipeline.capturing():
        shop.change()
        shop.bring_forward()
        Retention(pipeline.db, pipeline.settings.pipeline).give_up_passed(keep_s=0, parked_keep_s=3600)
        assert shop.states() == {customers: TableState.PARKED, orders: TableState.LIVE}
        shop.change()
        (resumed,) = resume_tables(pipeline.db, pipeline.settings, [customers])
        assert resumed.waiting > 0
        shop.bring_forward()
    shop.assert_mirrored()


def test_a_table_whose_letters_no_server_takes_is_parked(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: DeadLetters, letters: Iterable[DeadLetter]) -> int:
        raise StateLimit("the state database can't hold something that large")

    customers, orders = shop.keys
    shop.go_live()
    monkeypatch.setattr(DeadLetters, "add", refuse)
    with shop.pipeline.capturing():
        shop.change()
        with working(shop):
            wait_for(lambda: shop.states()[customers] is TableState.PARKED, "the table to be parked")
    assert shop.states()[orders] is TableState.LIVE
    assert "that large" in (shop.reasons()[customers] or "")
