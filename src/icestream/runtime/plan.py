"""What the first copy will take: asked of the source, nothing is copied."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from icestream.capture.selection import choose
from icestream.config.settings import Settings
from icestream.model.table import Target
from icestream.runtime.opening import opened_source
from icestream.sources.postgres.catalog import list_tables
from icestream.sources.postgres.connection import Connection, querying
from icestream.sources.postgres.sizes import TableSize, read_sizes

# Measured with the first copy of a table of ten columns, warm, source and Spark on one machine with two cores.
BYTES_PER_CORE_S = 25 * 1024**2
_LOCAL = re.compile(r"local\[([0-9]+)")
_WAL = """
SELECT (SELECT setting::bigint FROM pg_settings WHERE name = 'max_slot_wal_keep_size'),
       (SELECT wal_bytes / nullif(extract(epoch FROM now() - stats_reset), 0) FROM pg_stat_wal)::float8,
       (SELECT safe_wal_size FROM pg_replication_slots WHERE slot_name = %s)
"""


@dataclass(frozen=True)
class TablePlan:
    name: str
    target: str
    write_mode: str
    rows: int
    rows_are_guessed: bool
    bytes: int
    files: int
    seconds: float


@dataclass(frozen=True)
class WalRoom:
    """`limit_bytes` is None where only the server's disk limits what a slot keeps, and SQL does not tell that."""

    limit_bytes: int | None
    left_bytes: int | None  # of the limit, for a slot that is there already
    written_per_s: float | None  # on average since the server's statistics were reset

    @property
    def seconds(self) -> float | None:
        """How long Icestream may stand still before the slot is lost."""
        room = self.left_bytes if self.left_bytes is not None else self.limit_bytes
        return room / self.written_per_s if room is not None and self.written_per_s else None


@dataclass(frozen=True)
class CopyPlan:
    tables: tuple[TablePlan, ...]
    cores: int
    bytes_per_s: int
    wal: WalRoom

    @property
    def seconds(self) -> float:
        """All cores are shared, so the times of the tables add up."""
        return sum(table.seconds for table in self.tables)


def plan_copy(settings: Settings) -> CopyPlan:
    """Raises SourceUnavailable or SourceError."""
    cores = _cores(settings.spark.master)
    with opened_source(settings) as conn:
        choices = [choice for choice in choose(settings, list_tables(conn)) if not choice.target.skip_snapshot]
        sizes = read_sizes(conn, [choice.oid for choice in choices if choice.oid is not None])
        wal = _wal_room(conn, settings.source.logical.slot_name)
    pages = settings.source.logical.snapshot_chunk_pages
    tables = (
        _table(str(choice.name), choice.target, sizes[choice.oid], pages, cores)
        for choice in choices
        if choice.oid in sizes
    )
    return CopyPlan(tuple(tables), cores, cores * BYTES_PER_CORE_S, wal)


def _table(name: str, target: Target, size: TableSize, pages_per_range: int, cores: int) -> TablePlan:
    ranges = size.ranges(pages_per_range)
    seconds = size.bytes / (BYTES_PER_CORE_S * min(cores, max(1, ranges)))
    return TablePlan(name, target.key, target.write_mode, size.rows, size.is_guess, size.bytes, ranges, seconds)


def _cores(master: str) -> int:
    """What is known of a cluster is only that it is not smaller than this machine."""
    found = _LOCAL.match(master)
    if found is not None:
        return int(found[1])
    return 1 if master == "local" else os.cpu_count() or 1


def _wal_room(conn: Connection, slot: str) -> WalRoom:
    with querying():
        limit_mb, written, left = conn.execute(_WAL, (slot,)).fetchall()[0]
    return WalRoom(limit_mb * 1024**2 if limit_mb >= 0 else None, left, written)
