"""Can files be written where the settings say? Tried, since rights alone do not tell; nothing stays behind."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from icestream.capture.options import local_disk
from icestream.config.settings import Settings
from icestream.log.store import open_store
from icestream.model.ids import new_id
from icestream.verify.findings import Finding, error, warning

_LITTLE_ROOM = 1024**3
_PROBE = b"icestream check"


def check_storage(settings: Settings) -> list[Finding]:
    """Raises StorageError when the staging store is not on this machine and cannot be written."""
    sink = settings.sink
    found = (
        [] if sink.local_warehouse is None else list(_unwritable("warehouse", "sink.warehouse", sink.local_warehouse))
    )
    staging = Path(sink.staging_root)
    if not staging.is_absolute():
        _probe_store(settings)
    elif not found:  # by default it lies in the warehouse
        found = list(_unwritable("staging folder", "sink.staging", staging))
    return [*found, *_little_room()]


def _little_room() -> Iterator[Finding]:
    folder = local_disk()
    free = shutil.disk_usage(folder).free
    if free < _LITTLE_ROOM:
        yield warning(
            f"{folder} has {free // 1024**2:,} MB left",
            "make room, or set TMPDIR to a folder on another disk",
            why="transactions that are larger than a few megabytes wait there for their commit",
        )


def _probe_store(settings: Settings) -> None:
    store = open_store(settings.sink.staging_root, settings.sink.catalog_properties())
    probe = f"probe-{new_id()}"
    store.put(probe, _PROBE)
    store.delete(probe)


def _unwritable(what: str, key: str, folder: Path) -> Iterator[Finding]:
    hint = f"grant the right or make room, or choose another `{key}`"
    try:
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
        if nearest.is_dir():
            _probe_folder(nearest)
        else:
            yield error(f"the {what} {folder} is not a folder: {nearest} is a file", f"choose another `{key}`")
    except OSError as err:
        yield error(f"the {what} {folder} cannot be written: {err.strerror} (tried in {nearest})", hint)


def _probe_folder(folder: Path) -> None:
    probe = folder / f".icestream-probe-{new_id()}"
    try:
        probe.write_bytes(_PROBE)
    finally:
        probe.unlink(missing_ok=True)
