"""The metrics of a pipeline, read from its state at every scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

import icestream
from icestream.errors import IcestreamError
from icestream.model.table import TableState
from icestream.observe import metrics
from icestream.observe.metrics import Samples
from icestream.runtime.status import CopyStatus, SlotStatus, Status, TableStatus
from icestream.runtime.supervisor import Role


class StatusCollector(Collector):
    """Nothing is counted in between: what a scrape shows is what the state says then, whichever process it asks."""

    def __init__(self, pipeline: str, read: Callable[[], Status]) -> None:
        self._pipeline = pipeline
        self._read = read

    def describe(self) -> Iterable[Metric]:
        """Empty, so that registering does not read the state."""
        return ()

    def collect(self) -> Iterable[Metric]:
        samples = Samples()
        samples.add(metrics.INFO, 1, version=icestream.__version__, pipeline=self._pipeline)
        try:
            status = self._read()
        except IcestreamError:
            samples.add(metrics.STATE_UP, 0)
        else:
            samples.add(metrics.STATE_UP, 1)
            _add_status(samples, status)
        return samples.families()


class RoleCollector(Collector):
    """The supervisor's view of its children."""

    def __init__(self, roles: Sequence[Role]) -> None:
        self._roles = roles

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        samples = Samples()
        for role in self._roles:
            samples.add(metrics.ROLE_UP, float(role.is_running), role=role.spec.name)
            samples.add(metrics.ROLE_RESTARTS, role.restarts, role=role.spec.name)
        return samples.families()


def _add_status(samples: Samples, status: Status) -> None:
    if status.position is not None:
        samples.add(metrics.SOURCE_POSITION, int(status.position))
    if status.source_lag_bytes is not None:
        samples.add(metrics.SOURCE_LAG, status.source_lag_bytes)
    if status.watched_at is not None:
        samples.add(metrics.WATCHED, status.watched_at.timestamp())
    if status.slot is not None:
        _add_slot(samples, status.slot)
    samples.add(metrics.WORKERS, sum(worker.alive for worker in status.workers))
    if status.copy is not None:
        samples.add(metrics.COPY_RATIO, status.copy.percent / 100)
        samples.add(metrics.COPY_RATE, status.copy.rows_per_second)
        if status.copy.left_seconds is not None:
            samples.add(metrics.COPY_LEFT, status.copy.left_seconds)
    for table in status.tables:
        _add_table(samples, table)


def _add_slot(samples: Samples, slot: SlotStatus) -> None:
    samples.add(metrics.SLOT_BUDGET, slot.budget_bytes)
    if slot.retained_bytes is not None:
        samples.add(metrics.SLOT_RETAINED, slot.retained_bytes)
    if slot.safe_bytes is not None:
        samples.add(metrics.SLOT_SAFE, slot.safe_bytes)


def _add_table(samples: Samples, table: TableStatus) -> None:
    for state in TableState:
        samples.add(metrics.TABLE_STATE, float(table.state == state.value), table=table.name, state=state.value)
    samples.add(metrics.TABLE_PENDING_ROWS, table.pending_rows, table=table.name)
    samples.add(metrics.TABLE_PENDING_BYTES, table.pending_bytes, table=table.name)
    samples.add(metrics.TABLE_APPLIED, table.rows_applied, table=table.name)
    samples.add(metrics.DEAD_LETTERS, table.dead_letters, table=table.name)
    samples.add(metrics.TABLE_FAILURES, table.failures, table=table.name)
    samples.add(metrics.TABLE_LAG, table.lag_seconds, table=table.name)
    if table.commit_lag_ms is not None:
        samples.add(metrics.TABLE_COMMIT_LAG, table.commit_lag_ms / 1000, table=table.name)
    if table.copy is not None:
        _add_copy(samples, table.name, table.copy)


def _add_copy(samples: Samples, table: str, copy: CopyStatus) -> None:
    samples.add(metrics.TABLE_COPY_ROWS, copy.rows, table=table)
    samples.add(metrics.TABLE_COPY_BYTES, copy.bytes, table=table)
    samples.add(metrics.TABLE_COPY_RATIO, copy.percent / 100, table=table)
    samples.add(metrics.TABLE_COPY_RATE, copy.rows_per_second, table=table)
    if copy.left_seconds is not None:
        samples.add(metrics.TABLE_COPY_LEFT, copy.left_seconds, table=table)
