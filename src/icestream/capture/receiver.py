"""The thread that owns the replication connection: it reads, cuts batches, and keeps the server informed."""

from __future__ import annotations

import threading
import time
from typing import Final

from icestream.capture.assembler import Assembler
from icestream.capture.handover import Handover
from icestream.capture.metrics import CaptureMetrics
from icestream.capture.options import FlushLimits
from icestream.errors import TablesChanged
from icestream.model.position import Lsn
from icestream.observe.health import Pulse
from icestream.observe.steps import reached
from icestream.sources.postgres.stream import ReplicationStream

_LONGEST_PAUSE_S: Final = 0.1  # until a receipt, a failure of the flusher or a stop is noticed
_SHORTEST_PAUSE_S: Final = 0.01  # while a batch that is due waits for the flusher
_LONG_AGO: Final = float("-inf")


class Receiver:
    """Nothing here waits for a disk or the state database, so that feedback is on time whatever the flusher does."""

    def __init__(
        self,
        stream: ReplicationStream,
        assembler: Assembler,
        handover: Handover,
        limits: FlushLimits,
        *,
        idle_interval_s: float,
        metrics: CaptureMetrics,
        pulse: Pulse,
    ) -> None:
        self._stream = stream
        self._assembler = assembler
        self._handover = handover
        self._limits = limits
        self._idle_interval_s = idle_interval_s
        self._metrics = metrics
        self._pulse = pulse
        self._handed = Lsn(0)  # up to here the flusher knows; the first batch tells the server where the log stands
        self._last_flush = _LONG_AGO  # of changes
        self._last_cut = _LONG_AGO  # of changes or of a mere position
        self._batch_began = time.monotonic()  # about when its first change came

    def run(self, stop: threading.Event, changed: threading.Event) -> None:
        """Until `stop`, then everything that is committed and read is flushed and acknowledged before it returns.

        Raises what ended the stream or the flusher, and TablesChanged after `changed`.
        """
        while not stop.is_set():
            if changed.is_set():
                raise TablesChanged("tables or publication of the source are not what they were")
            self._tend()
            if self._is_full():
                if not self._hand_over():
                    self._handover.wait_for_change(_LONGEST_PAUSE_S)
                continue
            was_there = self._read()
            if not self._flush_if_due() and not was_there:
                self._stream.wait(self._pause())
        self._read()  # what has arrived already is made durable, too
        self._drain()

    def _read(self) -> bool:
        """Whether anything had arrived."""
        size = self._stream.read(self._assembler)
        if size:
            self._assembler.settle()
            self._metrics.received(size)
        if not self._assembler.batch:
            self._batch_began = time.monotonic()
        return bool(size)

    def _flush_if_due(self) -> bool:
        is_due = time.monotonic() >= self._due_at()
        return is_due and self._handover.is_idle and self._hand_over()

    def _tend(self) -> None:
        self._pulse.beat()
        receipt = self._handover.collect_receipt()
        if receipt is not None:
            self._stream.acknowledge(receipt)
        if self._stream.tend() and receipt is not None:
            reached("position acknowledged")
            self._metrics.acknowledged(receipt.position)

    def _is_full(self) -> bool:
        batch = self._assembler.batch
        return batch.row_count >= self._limits.rows or batch.size >= self._limits.size

    def _due_at(self) -> float:
        """Changes wait an interval after the flush before; a mere position may wait longer.

        While the server has more to send, they also wait an interval for it: a backlog is not flushed in crumbs.
        """
        if self._assembler.batch:
            since = self._last_flush if self._assembler.is_caught_up else max(self._last_flush, self._batch_began)
            return since + self._limits.interval_s
        if self._assembler.reached > self._handed:
            return self._last_cut + self._idle_interval_s
        return float("inf")

    def _pause(self) -> float:
        until_due = self._due_at() - time.monotonic()
        return min(max(until_due, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)

    def _hand_over(self) -> bool:
        """Cuts a batch if the flusher has room for it."""
        if not self._handover.has_room(self._assembler.batch.size):
            return False
        batch = self._assembler.cut()
        had_changes = bool(batch)
        self._handover.put(batch)
        self._handed = batch.position
        self._last_cut = time.monotonic()
        if had_changes:
            self._last_flush = self._last_cut
        return True

    def _drain(self) -> None:
        while self._assembler.reached > self._handed and not self._hand_over():
            self._tend()
            self._handover.wait_for_change(_LONGEST_PAUSE_S)
        self._handover.close()
        while not self._handover.is_finished:
            self._tend()
            self._handover.wait_for_change(_LONGEST_PAUSE_S)
        self._tend()
        self._stream.finish()
