"""Between the thread that receives and the thread that flushes."""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

from icestream.capture.batch import Batch
from icestream.model.receipt import Receipt

_MOST_BATCHES: Final = 8  # batches of large transactions weigh nothing in memory, but hold files open


class Handover:
    """Batches one way, receipts the other. Bounded in bytes: a full one makes the receiver stop reading."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._changed = threading.Condition()
        self._waiting: deque[Batch] = deque()
        self._held = 0  # bytes waiting or being flushed
        self._unfinished = 0  # batches
        self._receipt: Receipt | None = None
        self._failure: BaseException | None = None
        self._closed = False

    @property
    def is_idle(self) -> bool:
        """Whether no batch waits; one may be in work."""
        return not self._waiting

    @property
    def is_finished(self) -> bool:
        """Whether every batch is durable."""
        return not self._unfinished

    def has_room(self, size: int) -> bool:
        """There always is for one batch when nothing else is under way."""
        with self._changed:
            fits = not self._held or self._held + size <= self._capacity
            return fits and len(self._waiting) < _MOST_BATCHES

    def put(self, batch: Batch) -> None:
        with self._changed:
            self._waiting.append(batch)
            self._held += batch.size
            self._unfinished += 1
            self._changed.notify_all()

    def wait_for_change(self, timeout_s: float) -> None:
        """Until a batch is done or the flusher failed, at most so long."""
        with self._changed:
            self._changed.wait(timeout_s)

    def take(self) -> Batch | None:
        """The next batch; None once it is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            return self._waiting.popleft() if self._waiting else None

    def done(self, size: int, receipt: Receipt) -> None:
        """A batch of `size` bytes is durable."""
        with self._changed:
            self._held -= size
            self._unfinished -= 1
            self._receipt = receipt
            self._changed.notify_all()

    def collect_receipt(self) -> Receipt | None:
        """The newest receipt, once. Raises what made the flusher fail."""
        with self._changed:
            if self._failure is not None:
                raise self._failure
            receipt, self._receipt = self._receipt, None
            return receipt

    def fail(self, failure: BaseException) -> None:
        with self._changed:
            self._failure = failure
            self._changed.notify_all()

    def close(self) -> None:
        """No more batches will come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def abandon(self) -> None:
        """Throws away what still waits."""
        with self._changed:
            while self._waiting:
                self._waiting.pop().drop()
