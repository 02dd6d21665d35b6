"""What source and state show at one moment, and whether they belong together. Nothing is changed here."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from icestream.capture.agreement import Evidence, disagreement
from icestream.capture.options import CaptureOptions
from icestream.errors import SourceError, WrongCluster
from icestream.model.table import TableState
from icestream.sources.postgres.connection import Connection
from icestream.sources.postgres.publication import Publication, find_publication
from icestream.sources.postgres.slot import PLUGIN, Slot, System, dropping, find_slot, identify_source
from icestream.state.database import Database
from icestream.state.identity import Identity, PipelineIdentity
from icestream.state.log_index import Flushed, LogIndex

_BEGIN_ANEW = "point the settings to what they were, or run `icestream cleanup` to begin anew"
# The state may be that of a pipeline that is well, with which this one shares no more than a default.
_NAME_OF_ITS_OWN = (
    "if that one is another pipeline, give this one a name of its own with `state.pipeline`; if it is this one, point"
    " the settings to what they were, or run `icestream cleanup`, which forgets all that is known of it, to begin anew"
)


@dataclass(frozen=True)
class Found:
    slot: Slot | None
    identity: PipelineIdentity | None
    flushed: Flushed | None
    publication: Publication | None
    system: System
    intends_slot: bool  # the state names the slot as that of a start that did not get as far as its epoch

    def disagreement(self) -> str | None:
        """Why changes are missing between the log and the stream; None if all is well, and before the first start."""
        if self.identity is None:
            return None
        oid = self.publication.oid if self.publication else None
        return disagreement(Evidence(self.identity, self.flushed, self.system, self.slot, oid))


def look(conn: Connection, options: CaptureOptions, db: Database | None) -> Found:
    """`db` is None where there is no state yet."""
    # In this order: a capture that still ends moves the log, then the slot, and the WAL is ahead of both.
    slot = find_slot(conn, options.slot)
    identity = Identity(db, options.pipeline) if db else None
    return Found(
        slot=slot,
        identity=identity.load() if identity else None,
        flushed=LogIndex(db, options.pipeline).flushed() if db else None,
        publication=find_publication(conn, options.publication),
        system=(system := identify_source(options.source)),
        intends_slot=identity is not None and identity.intends_slot(options.slot, system.identifier),
    )


def require_same_source(found: Found, options: CaptureOptions) -> None:
    """Raises WrongCluster or SourceError when the state belongs to another cluster, slot or publication."""
    identity, system = found.identity, found.system
    if identity is None:
        return
    if identity.system_identifier != system.identifier:
        raise WrongCluster(
            f"pipeline '{options.pipeline}' belongs to cluster {identity.system_identifier}, the source is"
            f" cluster {system.identifier}",
            hint=_NAME_OF_ITS_OWN,
        )
    if identity.slot_name != options.slot:
        raise SourceError(
            f"pipeline '{options.pipeline}' reads slot '{identity.slot_name}', the settings name slot '{options.slot}'",
            hint=_NAME_OF_ITS_OWN,
        )
    if identity.publication_name != options.publication:
        raise SourceError(
            f"pipeline '{options.pipeline}' reads publication '{identity.publication_name}', the settings name"
            f" publication '{options.publication}'",
            hint=_BEGIN_ANEW,
        )


def require_ours(found: Found, database: str) -> None:
    """A slot that no epoch knows has to be that of a start that did not get as far as its epoch."""
    slot = found.slot
    if slot is None or found.identity is not None:
        return
    if slot.plugin != PLUGIN or slot.database != database:
        raise SourceError(
            f"replication slot '{slot.name}' exists and is not ours (plugin {slot.plugin}, database {slot.database})",
            hint="choose another `source.logical.slot_name`",
        )
    if not found.intends_slot:
        raise SourceError(
            f"replication slot '{slot.name}' exists, and the state knows nothing of it: another program may need"
            " it, or `state.postgres_url` is not what it was",
            hint=f"choose another `source.logical.slot_name`; or, if nobody needs it, {dropping(slot.name)}",
        )


def begins_anew(states: Collection[TableState]) -> bool:
    """Whether a log that was lost may begin anew: nobody relies on it, and someone has asked for new copies since."""
    return TableState.PENDING in states and TableState.LIVE not in states
