"""What the capture of this process has done, counted for `/metrics`."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from icestream.model.position import Lsn
from icestream.observe import metrics
from icestream.observe.metrics import Definition, Samples


class CaptureCounters(Collector):
    """Capture calls the first five methods (see `capture.metrics.CaptureMetrics`), a scrape the last two."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[Definition, float] = defaultdict(float)

    def connected(self) -> None:
        self._count({metrics.CAPTURE_CONNECTIONS: 1})

    def received(self, size: int) -> None:
        self._count({metrics.CAPTURE_RECEIVED: size})

    def flushed(self, *, rows: int, files: int, size: int, seconds: float, position: Lsn) -> None:
        self._count(
            {
                metrics.CAPTURE_FLUSHES: 1,
                metrics.CAPTURE_FLUSH_TIME: seconds,
                metrics.CAPTURE_FLUSHED_ROWS: rows,
                metrics.CAPTURE_FLUSHED_BYTES: size,
            }
        )

    def acknowledged(self, position: Lsn) -> None:
        with self._lock:
            self._values[metrics.CAPTURE_ACKNOWLEDGED] = int(position)

    def failed(self, error: BaseException) -> None:
        self._count({metrics.CAPTURE_FAILURES: 1})

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        samples = Samples()
        with self._lock:
            for definition, value in self._values.items():
                samples.add(definition, value)
        return samples.families()

    def _count(self, amounts: dict[Definition, float]) -> None:
        with self._lock:
            for definition, amount in amounts.items():
                self._values[definition] += amount
