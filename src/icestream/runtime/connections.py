"""Trying the connections to both ends, one line per finding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from icestream.config.settings import Settings
from icestream.model.table import TableName
from icestream.runtime.opening import opened_source
from icestream.runtime.preparation import make_warehouse
from icestream.sources.postgres.slot import Slot, find_slot, identify_source


def describe_source(settings: Settings) -> Iterator[str]:
    """Raises SourceUnavailable or SourceError when the source is not what replication needs."""
    system = identify_source(settings.source.postgres.conninfo())
    yield f"ok: replication connection to {settings.source.postgres.host} port {settings.source.postgres.port}"
    yield f"system identifier {system.identifier}, timeline {system.timeline}, position {system.position}"
    with opened_source(settings) as conn:
        yield _described(settings.source.logical.slot_name, find_slot(conn, settings.source.logical.slot_name))


def describe_catalog(settings: Settings) -> Iterator[str]:
    """Opens the catalog and makes the namespaces of the tables that the settings name in full."""
    from icestream.lake.session import LakeOptions, open_lake

    make_warehouse(settings)
    with closing(open_lake(LakeOptions.from_settings(settings))) as lake:
        yield f"ok: catalog {settings.sink.catalog_name!r} with warehouse {settings.sink.warehouse}"
        for namespace in _namespaces(settings):
            lake.catalog.ensure_namespace(namespace)
            yield f"ok: namespace {namespace}"


def _described(name: str, slot: Slot | None) -> str:
    if slot is None:
        return f"slot {name!r} does not exist yet; `icestream run` creates it"
    use = f"in use by process {slot.active_pid}" if slot.active else "not in use"
    lost = f", LOST ({slot.invalidation or slot.wal_status})" if slot.is_lost else ""
    return f"slot {name!r}: {use}, confirmed {slot.confirmed}, restart {slot.restart}{lost}"


def _namespaces(settings: Settings) -> list[str]:
    """A pattern names no namespace of its own, unless `sink.namespace` does."""
    targets = [settings.target_of(entry, TableName.parse(entry.name)) for entry in settings.tables]
    return sorted({target.namespace for target in targets if not {"*", "?"} & set(target.namespace)})
