"""Which source cluster, slot and epoch a pipeline's positions and offsets belong to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from icestream.model.position import Lsn
from icestream.state.database import Database

_LOAD = """
SELECT epoch::text, system_identifier, timeline, slot_name, publication_name, publication_oid, created_at
FROM {schema}.pipeline_meta
WHERE pipeline = %(pipeline)s
"""
# Comes first: claims serialize on this row, so none can slip between it and the emptying of the log.
_RESET_POSITION = """
INSERT INTO {schema}.flushed_lsn AS stored (pipeline, epoch, lsn)
VALUES (%(pipeline)s, %(epoch)s, %(position)s)
ON CONFLICT (pipeline) DO UPDATE
SET epoch = excluded.epoch, lsn = excluded.lsn, claim_id = NULL, updated_at = now()
WHERE stored.epoch <> excluded.epoch
"""
_SAVE = """
INSERT INTO {schema}.pipeline_meta
    (pipeline, epoch, system_identifier, timeline, slot_name, publication_name, publication_oid)
VALUES
    (%(pipeline)s, %(epoch)s, %(system_identifier)s, %(timeline)s, %(slot_name)s, %(publication_name)s,
     %(publication_oid)s)
ON CONFLICT (pipeline) DO UPDATE
SET epoch = excluded.epoch, system_identifier = excluded.system_identifier, timeline = excluded.timeline,
    slot_name = excluded.slot_name, publication_name = excluded.publication_name,
    publication_oid = excluded.publication_oid, created_at = now(), updated_at = now()
"""
_EMPTY_LOG = """
WITH ended AS (DELETE FROM {schema}.log_index WHERE pipeline = %(pipeline)s RETURNING s3_path)
INSERT INTO {schema}.garbage (path, pipeline)
SELECT s3_path, %(pipeline)s FROM ended
ON CONFLICT (path) DO NOTHING
"""
# Demands for a new copy stay; positions of the epoch before mean nothing in this one.
_KEEP_DEMANDS = """
UPDATE {schema}.tables
SET requested_lsn = least(requested_lsn, 1), snapshot_lsn = NULL
WHERE pipeline = %(pipeline)s
"""
_INTEND_SLOT = """
INSERT INTO {schema}.slot_intent (pipeline, slot_name, system_identifier)
VALUES (%(pipeline)s, %(slot_name)s, %(system_identifier)s)
ON CONFLICT (pipeline) DO UPDATE
SET slot_name = excluded.slot_name, system_identifier = excluded.system_identifier, created_at = now()
"""
_INTENDS_SLOT = """
SELECT FROM {schema}.slot_intent
WHERE pipeline = %(pipeline)s AND slot_name = %(slot_name)s AND system_identifier = %(system_identifier)s
"""
_SLOT_IS_MADE = "DELETE FROM {schema}.slot_intent WHERE pipeline = %(pipeline)s"
_RESTART_OFFSETS = "DELETE FROM {schema}.log_seq WHERE pipeline = %(pipeline)s"


@dataclass(frozen=True)
class PipelineIdentity:
    epoch: str
    system_identifier: int
    timeline: int
    slot_name: str
    publication_name: str
    publication_oid: int  # one that was dropped and created again is another one
    created_at: datetime  # when the epoch began


class Identity:
    def __init__(self, db: Database, pipeline: str) -> None:
        self._db = db
        self._pipeline = pipeline

    def load(self) -> PipelineIdentity | None:
        row = self._db.fetch_one(_LOAD, {"pipeline": self._pipeline})
        if row is None:
            return None
        return PipelineIdentity(**{**row, "system_identifier": int(row["system_identifier"])})

    def intend_slot(self, slot_name: str, system_identifier: int) -> None:
        """Called before a slot is created, when there is none of that name. May be repeated."""
        self._db.execute(_INTEND_SLOT, self._slot(slot_name, system_identifier))

    def intends_slot(self, slot_name: str, system_identifier: int) -> bool:
        """Whether a slot of that name was made by a start that did not get as far as its epoch."""
        return self._db.fetch_one(_INTENDS_SLOT, self._slot(slot_name, system_identifier)) is not None

    def begin_epoch(
        self,
        *,
        epoch: str,
        system_identifier: int,
        timeline: int,
        slot_name: str,
        publication_name: str,
        publication_oid: int,
        position: Lsn,
    ) -> None:
        """Starts the log anew at `position`, with offset 0 for every table; called once a new slot is there.

        Files of the epoch before are left to retention, claims for it are refused from now on. Repeating the call
        with the same epoch changes nothing.
        """
        values = {
            "pipeline": self._pipeline,
            "epoch": epoch,
            "system_identifier": system_identifier,
            "timeline": timeline,
            "slot_name": slot_name,
            "publication_name": publication_name,
            "publication_oid": publication_oid,
            "position": int(position),
        }
        with self._db.transaction() as tx:
            if tx.execute(_RESET_POSITION, values) == 0:
                return
            tx.execute(_SAVE, values)
            tx.execute(_SLOT_IS_MADE, values)
            tx.execute(_EMPTY_LOG, values)
            tx.execute(_RESTART_OFFSETS, values)
            tx.execute(_KEEP_DEMANDS, values)

    def _slot(self, slot_name: str, system_identifier: int) -> dict[str, object]:
        return {"pipeline": self._pipeline, "slot_name": slot_name, "system_identifier": system_identifier}
