"""The hand-over between receiver and flusher: bounded, in order, and honest about failures."""

from __future__ import annotations

import threading

import pytest

from icestream.capture.batch import Batch
from icestream.capture.handover import Handover
from icestream.errors import StorageError
from icestream.model.position import Lsn
from icestream.model.receipt import Receipt


def batch_of(size: int) -> Batch:
    batch = Batch()
    batch.size = size
    return batch


def receipt(position: int) -> Receipt:
    return Receipt(Lsn(position), "c")


def test_it_is_full_when_its_bytes_are_under_way_and_free_when_they_are_durable() -> None:
    handover = Handover(100)
    handover.put(batch_of(80))
    assert not handover.has_room(30)
    assert handover.has_room(20)
    taken = handover.take()
    assert taken is not None and not handover.has_room(30), "a batch in work still holds its bytes"
    handover.done(taken.size, receipt(1))
    assert handover.has_room(30)


def test_a_batch_larger_than_all_of_it_passes_when_nothing_else_is_under_way() -> None:
    assert Handover(100).has_room(1000)


def test_batches_without_bytes_are_bounded_too() -> None:
    handover = Handover(100)
    while handover.has_room(0):
        handover.put(batch_of(0))
    assert not handover.is_finished


def test_the_newest_receipt_is_collected_once() -> None:
    handover = Handover(100)
    for position in (1, 2):
        handover.put(batch_of(1))
        handover.take()
        handover.done(1, receipt(position))
    assert handover.collect_receipt() == receipt(2)
    assert handover.collect_receipt() is None
    assert handover.is_finished


def test_the_receiver_hears_of_a_failure() -> None:
    handover = Handover(100)
    handover.fail(StorageError("full"))
    with pytest.raises(StorageError):
        handover.collect_receipt()


def test_a_closed_one_gives_out_what_it_holds_and_then_nothing() -> None:
    handover = Handover(100)
    handover.put(batch_of(1))
    handover.close()
    assert handover.take() is not None
    assert handover.take() is None


def test_taking_waits_for_a_batch() -> None:
    handover, taken = Handover(100), list[Batch | None]()
    thread = threading.Thread(target=lambda: taken.append(handover.take()))
    thread.start()
    batch = batch_of(1)
    handover.put(batch)
    thread.join(10)
    assert taken == [batch]
