"""The receiver's loop when there is nothing to do."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from icestream.capture.assembler import Assembler
from icestream.capture.batch import Batch
from icestream.capture.handover import Handover
from icestream.capture.metrics import NoMetrics
from icestream.capture.options import FlushLimits
from icestream.capture.receiver import Receiver
from icestream.model.position import Lsn
from icestream.observe.health import Pulse


class Enough(Exception):
    pass


class SilentStream:
    """Nothing arrives; notes for how long it was waited for."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def read(self, _sink: object) -> int:
        return 0

    def tend(self) -> bool:
        return False

    def wait(self, timeout_s: float) -> None:
        self.waits.append(timeout_s)
        if len(self.waits) == 10:
            raise Enough


def test_a_batch_that_is_due_while_the_flusher_is_busy_is_waited_for(tmp_path: Path) -> None:
    stream, handover = SilentStream(), Handover(2**20)
    assembler = Assembler({}, Lsn(0), spill_folder=tmp_path, memory_bytes=2**20)
    handover.put(Batch())
    assembler.keepalive(Lsn(100))  # a position that is due at once
    limits = FlushLimits(interval_s=0.0)
    pulse = Pulse("capture")
    receiver = Receiver(stream, assembler, handover, limits, idle_interval_s=0.0, metrics=NoMetrics(), pulse=pulse)  # type: ignore[arg-type]
    with pytest.raises(Enough):
        receiver.run(threading.Event(), threading.Event())
    assert pulse.ready().ok
    assert min(stream.waits) > 0, "a wait of no time is a busy loop"
