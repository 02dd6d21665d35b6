"""What capture is told by the settings."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from icestream.config.settings import Settings
from icestream.model.change import StagingFormat


def local_disk() -> Path:
    """`/tmp` is often held in memory, which is what spilling is meant to spare; `/var/tmp` never is."""
    on_disk = Path("/var/tmp")
    if "TMPDIR" in os.environ or not os.access(on_disk, os.W_OK):
        return Path(tempfile.gettempdir())
    return on_disk


@dataclass(frozen=True)
class FlushLimits:
    """A flush is due when the first of these is reached; it is always cut between transactions."""

    interval_s: float = 1.0
    rows: int = 50_000
    size: int = 64 * 1024**2


@dataclass(frozen=True)
class CaptureOptions:
    source: str = field(repr=False)  # conninfo; may contain a password
    pipeline: str
    slot: str
    publication: str
    flush: FlushLimits = FlushLimits()
    standby_interval_s: float = 10.0
    watch_interval_s: float = 10.0
    slot_budget: int = 10 * 1024**3
    transaction_bytes: int = 8 * 1024**2  # of transactions without a commit yet; beyond it they go to disk
    spill_folder: Path = field(default_factory=local_disk)
    staging_format: StagingFormat = StagingFormat.COLUMNS

    @classmethod
    def from_settings(cls, settings: Settings) -> CaptureOptions:
        logical, sink = settings.source.logical, settings.sink
        return cls(
            source=settings.source.postgres.conninfo(),
            pipeline=settings.pipeline,
            slot=logical.slot_name,
            publication=logical.publication_name,
            flush=FlushLimits(sink.flush_interval, sink.flush_rows, sink.flush_bytes),
            standby_interval_s=logical.standby_interval,
            watch_interval_s=logical.watch_interval,
            slot_budget=logical.slot_budget,
            staging_format=StagingFormat(sink.staging_format),
        )
