"""Taking back what a pipeline has made in the source, the state and the staging folder. Iceberg tables stay."""

from __future__ import annotations

from collections.abc import Iterator

from icestream.config.settings import Settings
from icestream.errors import StateError, StateMissing
from icestream.log.store import open_store
from icestream.runtime.opening import opened_source, opened_state
from icestream.sources.postgres.connection import Connection
from icestream.sources.postgres.publication import drop_publication, find_publication
from icestream.sources.postgres.slot import drop_slot, dropping, find_slot, identify_source
from icestream.state.cleanup import forget_pipeline, staged_paths
from icestream.state.database import Database
from icestream.state.groups import Groups
from icestream.state.identity import Identity
from icestream.state.leases import Leases
from icestream.state.migrate import require_current


def plan(settings: Settings) -> list[str]:
    """What `remove` is going to remove, for a person to agree to. Looks at nothing."""
    return [
        f"replication slot {settings.source.logical.slot_name!r}, if the state names it as this pipeline's",
        f"publication {settings.source.logical.publication_name!r}, if it was made for this pipeline",
        f"the state of pipeline {settings.pipeline!r} in schema {settings.state.coordinator_schema!r}",
        f"its staged files under {settings.sink.staging_root}",
    ]


def remove(settings: Settings) -> Iterator[str]:
    """Removes it step by step and says so; after a failure it may be repeated. Raises when something still runs.

    The slot goes first: a capture that is still alive is found out before anything is lost.
    """
    with opened_state(settings) as db:
        has_state = _has_state(db)
        if has_state:
            _require_no_workers(db, settings)
        with opened_source(settings) as conn:
            ours = _known_slots(settings, Identity(db, settings.pipeline)) if has_state else set()
            yield from _remove_slots(conn, settings, ours)
            yield _remove_publication(conn, settings, ours)
        if has_state:
            yield _remove_staged_files(db, settings)
            yield _forget(db, settings)


def _has_state(db: Database) -> bool:
    try:
        require_current(db)
    except StateMissing:
        return False
    return True


def _require_no_workers(db: Database, settings: Settings) -> None:
    pipeline = settings.pipeline
    alive = [worker for group in Groups(db, pipeline).names() for worker in Leases(db, pipeline, group).active()]
    if alive:
        raise StateError(
            f"workers are still running: {', '.join(alive)}",
            hint="stop them first; one that was killed counts for as long as `state.consumer_ttl`",
        )


def _remove_slots(conn: Connection, settings: Settings, ours: set[str]) -> Iterator[str]:
    """The slot that the state knows, which may have another name than the settings say; no other is dropped."""
    configured = settings.source.logical.slot_name
    for name in sorted(ours):
        existed = find_slot(conn, name) is not None
        drop_slot(conn, name)
        yield f"ok: slot {name!r} {'removed' if existed else 'was not there'}"
    if configured in ours:
        return
    if find_slot(conn, configured) is None:
        yield f"ok: slot {configured!r} was not there"
    else:
        yield (
            f"left: slot {configured!r}, which the state does not name as ours in this cluster; if nobody needs it,"
            f" {dropping(configured)}"
        )


def _known_slots(settings: Settings, identity: Identity) -> set[str]:
    cluster = identify_source(settings.source.postgres.conninfo()).identifier
    known, configured = identity.load(), settings.source.logical.slot_name
    slots = {known.slot_name} if known is not None and known.system_identifier == cluster else set()
    return slots | {configured} if identity.intends_slot(configured, cluster) else slots


def _remove_publication(conn: Connection, settings: Settings, ours: set[str]) -> str:
    """Not while a slot is there that is not ours: whoever reads it may be the one that the publication was made for."""
    slot, name = settings.source.logical.slot_name, settings.source.logical.publication_name
    found = find_publication(conn, name)
    if found is None:
        return f"ok: publication {name!r} was not there"
    if found.owner != settings.pipeline:
        belongs = f"belongs to pipeline {found.owner!r}" if found.owner is not None else "Icestream has not made"
        return f"left: publication {name!r}, which {belongs}"
    if slot not in ours and find_slot(conn, slot) is not None:
        return f"left: publication {name!r}, which the slot may need"
    drop_publication(conn, name, pipeline=settings.pipeline)
    return f"ok: publication {name!r} removed"


def _remove_staged_files(db: Database, settings: Settings) -> str:
    store = open_store(settings.sink.staging_root, settings.sink.catalog_properties())
    paths = staged_paths(db, settings.pipeline)
    for path in paths:
        store.delete(path)
    return f"ok: {len(paths)} staged files removed"


def _forget(db: Database, settings: Settings) -> str:
    dropped = forget_pipeline(db, settings.pipeline)
    schema = settings.state.coordinator_schema
    return f"ok: state removed, {'with' if dropped else 'others still use'} schema {schema!r}"
