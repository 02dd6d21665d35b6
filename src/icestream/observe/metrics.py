"""Every metric Icestream shows: name, labels, unit and meaning. Names follow `icestream_<subject>_<what>_<unit>`."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class Kind(enum.Enum):
    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True)
class Definition:
    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


def _gauge(name: str, text: str, *labels: str) -> Definition:
    return Definition(name, Kind.GAUGE, text, labels)


def _counter(name: str, text: str, *labels: str) -> Definition:
    return Definition(name, Kind.COUNTER, text, labels)


INFO = _gauge("icestream_info", "Always 1; carries the version and the pipeline's name.", "version", "pipeline")
STATE_UP = _gauge("icestream_state_up", "1 if the state database answered this scrape.")
SOURCE_POSITION = _gauge(
    "icestream_source_position_bytes", "The position (LSN) up to which everything is in the log, as a number."
)
SOURCE_LAG = _gauge("icestream_source_lag_bytes", "WAL of the source that is not in the log yet.")
SLOT_RETAINED = _gauge("icestream_slot_retained_bytes", "WAL that the server keeps for the slot.")
SLOT_BUDGET = _gauge("icestream_slot_budget_bytes", "WAL that it may keep before there is a warning.")
SLOT_SAFE = _gauge("icestream_slot_safe_bytes", "WAL that can be written before the server gives the slot up.")
WATCHED = _gauge("icestream_watched_timestamp_seconds", "When capture last looked after the source.")
TABLE_STATE = _gauge("icestream_table_state", "1 for the state each table is in.", "table", "state")
TABLE_LAG = _gauge("icestream_table_lag_seconds", "Age of the oldest staged change not yet applied; else 0.", "table")
TABLE_PENDING_ROWS = _gauge("icestream_table_pending_rows", "Staged changes not yet applied.", "table")
TABLE_PENDING_BYTES = _gauge("icestream_table_pending_bytes", "Bytes of staged changes not yet applied.", "table")
TABLE_APPLIED = _counter("icestream_table_applied_rows_total", "Changes applied to the table.", "table")
TABLE_COMMIT_LAG = _gauge(
    "icestream_table_commit_lag_seconds",
    "How old the oldest change of the last table commit was when it was made.",
    "table",
)
DEAD_LETTERS = _gauge("icestream_table_dead_letters", "Values that did not fit, since the pipeline began.", "table")
TABLE_FAILURES = _gauge("icestream_table_failures", "Failures in a row while working on the table; else 0.", "table")
TABLE_COPY_ROWS = _gauge("icestream_table_copy_rows", "Rows written by the first copy that is under way.", "table")
TABLE_COPY_BYTES = _gauge("icestream_table_copy_bytes", "Bytes of the files of the copy that is under way.", "table")
TABLE_COPY_RATIO = _gauge("icestream_table_copy_ratio", "How much of the copy is done, by pages; 0 to 1.", "table")
TABLE_COPY_RATE = _gauge("icestream_table_copy_rows_per_second", "Rows per second since the copy began.", "table")
TABLE_COPY_LEFT = _gauge("icestream_table_copy_left_seconds", "Time until the copy is done, guessed.", "table")
COPY_RATIO = _gauge("icestream_copy_ratio", "How much of all copies that are under way is done, by pages; 0 to 1.")
COPY_RATE = _gauge("icestream_copy_rows_per_second", "Rows per second of all copies, since the first began.")
COPY_LEFT = _gauge("icestream_copy_left_seconds", "Time until all copies are done, guessed.")
WORKERS = _gauge("icestream_workers", "Workers whose lease has not ended.")
ROLE_UP = _gauge("icestream_role_up", "1 if the supervised role runs.", "role")
ROLE_RESTARTS = _counter("icestream_role_restarts_total", "How often the supervisor started the role again.", "role")
CAPTURE_CONNECTIONS = _counter("icestream_capture_connections_total", "Replication streams begun.")
CAPTURE_RECEIVED = _counter("icestream_capture_received_bytes_total", "Bytes received from the replication stream.")
CAPTURE_FLUSHES = _counter("icestream_capture_flushes_total", "Claims made.")
CAPTURE_FLUSH_TIME = _counter("icestream_capture_flush_seconds_total", "Time spent in flushes.")
CAPTURE_FLUSHED_ROWS = _counter("icestream_capture_flushed_rows_total", "Changes made durable in the log.")
CAPTURE_FLUSHED_BYTES = _counter("icestream_capture_flushed_bytes_total", "Bytes of the staged files.")
CAPTURE_FAILURES = _counter("icestream_capture_failures_total", "Failures after which capture tried again.")
CAPTURE_ACKNOWLEDGED = _gauge(
    "icestream_capture_acknowledged_position_bytes", "The position (LSN) acknowledged to the source, as a number."
)

DEFINITIONS = (
    INFO,
    STATE_UP,
    SOURCE_POSITION,
    SOURCE_LAG,
    SLOT_RETAINED,
    SLOT_BUDGET,
    SLOT_SAFE,
    WATCHED,
    TABLE_STATE,
    TABLE_LAG,
    TABLE_PENDING_ROWS,
    TABLE_PENDING_BYTES,
    TABLE_APPLIED,
    TABLE_COMMIT_LAG,
    DEAD_LETTERS,
    TABLE_FAILURES,
    TABLE_COPY_ROWS,
    TABLE_COPY_BYTES,
    TABLE_COPY_RATIO,
    TABLE_COPY_RATE,
    TABLE_COPY_LEFT,
    COPY_RATIO,
    COPY_RATE,
    COPY_LEFT,
    WORKERS,
    ROLE_UP,
    ROLE_RESTARTS,
    CAPTURE_CONNECTIONS,
    CAPTURE_RECEIVED,
    CAPTURE_FLUSHES,
    CAPTURE_FLUSH_TIME,
    CAPTURE_FLUSHED_ROWS,
    CAPTURE_FLUSHED_BYTES,
    CAPTURE_FAILURES,
    CAPTURE_ACKNOWLEDGED,
)


class Samples:
    """The values of one scrape."""

    def __init__(self) -> None:
        self._families: dict[str, Metric] = {}

    def add(self, definition: Definition, value: float, **labels: str) -> None:
        if set(labels) != set(definition.labels):
            raise ValueError(f"{definition.name} has the labels {definition.labels}, not {tuple(labels)}")
        self._family(definition).add_metric([labels[name] for name in definition.labels], value)

    def families(self) -> Iterable[Metric]:
        return self._families.values()

    def _family(self, definition: Definition) -> GaugeMetricFamily | CounterMetricFamily:
        family = self._families.get(definition.name)
        if family is None:
            make = GaugeMetricFamily if definition.kind is Kind.GAUGE else CounterMetricFamily
            family = make(definition.name, definition.help, labels=definition.labels)
            self._families[definition.name] = family
        assert isinstance(family, GaugeMetricFamily | CounterMetricFamily)
        return family


def registry_of(*collectors: Collector) -> CollectorRegistry:
    """A registry of our own: no metrics of libraries, and several can live in one test process."""
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    return registry
