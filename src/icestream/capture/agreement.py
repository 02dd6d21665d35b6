"""Whether what the state remembers and what the source shows can both be true."""

from __future__ import annotations

from dataclasses import dataclass

from icestream.errors import SourceUnavailable
from icestream.model.position import Lsn
from icestream.sources.postgres.slot import Slot, System
from icestream.state.identity import PipelineIdentity
from icestream.state.log_index import Flushed


@dataclass(frozen=True)
class Evidence:
    identity: PipelineIdentity
    flushed: Flushed | None
    system: System
    slot: Slot | None
    publication_oid: int | None


def disagreement(found: Evidence) -> str | None:
    """Why changes are missing between the log and the stream, so that no table can be trusted; None if all is well.

    A claim comes before its acknowledgement, so the slot is never ahead of the log unless someone meddled. Raises
    SourceUnavailable when only time can tell.
    """
    return _of_state(found) or _of_slot(found) or _of_publication(found) or _of_time(found)


def _of_state(found: Evidence) -> str | None:
    if found.flushed is None:
        return "the state no longer knows how far the log reaches"
    if found.flushed.epoch != found.identity.epoch:
        return f"the log is of epoch {found.flushed.epoch}, the pipeline of epoch {found.identity.epoch}"
    return None


def _of_slot(found: Evidence) -> str | None:
    slot = found.slot
    if slot is None:
        return f"replication slot '{found.identity.slot_name}' is gone"
    if slot.is_lost:
        return f"replication slot '{slot.name}' has lost its WAL ({slot.invalidation or slot.wal_status})"
    if slot.confirmed is not None and slot.confirmed > _position(found):
        return (
            f"replication slot '{slot.name}' is at {slot.confirmed}, the log ends at {_position(found)}: the slot was"
            " moved or made anew, or the state was restored from an older copy"
        )
    return None


def _of_publication(found: Evidence) -> str | None:
    if found.publication_oid is None:
        # Up to PostgreSQL 17 the slot cannot even be read any more; later ones send nothing, and only log it.
        return f"publication '{found.identity.publication_name}' is gone"
    if found.publication_oid != found.identity.publication_oid:
        return f"publication '{found.identity.publication_name}' was dropped and created again"
    return None


def _of_time(found: Evidence) -> str | None:
    if found.system.timeline != found.identity.timeline:
        return (
            f"the source went from timeline {found.identity.timeline} to {found.system.timeline}: it was restored or"
            " failed over, and may no longer contain what was captured"
        )
    if found.system.position < _position(found):
        if found.system.is_standby:
            raise SourceUnavailable(
                f"the standby has replayed up to {found.system.position}, the log ends at {_position(found)}: it has to"
                " catch up with its primary first"
            )
        return (
            f"the source is at {found.system.position}, the log ends at {_position(found)}: the source was restored"
            " from an older copy"
        )
    return None


def _position(found: Evidence) -> Lsn:
    return found.flushed.position if found.flushed else Lsn(0)
