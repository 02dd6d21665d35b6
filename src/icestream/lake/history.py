"""What the table itself remembers: how far it has come, and which commits are in it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

import msgspec

from icestream.lake.table import IcebergTable
from icestream.model.cursor import Cursor
from icestream.model.position import Lsn

OURS = "icestream."  # what a snapshot's summary says of us
COMMIT_ID = "icestream.commit-id"
PART = "icestream.part"
OWNER = "icestream.owner"
CURSOR = "icestream.cursor"

_PIPELINE = "icestream.pipeline"
_GROUP = "icestream.group"
_EPOCH = "icestream.epoch"
_POSITION = "icestream.position"
_COPIED_AT = "icestream.copied-at"


@dataclass(frozen=True)
class Owner:
    """The one pipeline and group that may write a replicated table."""

    pipeline: str
    group: str

    def __str__(self) -> str:
        return f"{self.pipeline}/{self.group}"


class _CursorProperty(msgspec.Struct):
    """The cursor beside the snapshots, for when someone expires the snapshot that carried it."""

    cursor: Cursor
    snapshot_id: int | None


def cursor_summary(owner: Owner, cursor: Cursor) -> dict[str, str]:
    return {
        _PIPELINE: owner.pipeline,
        _GROUP: owner.group,
        _EPOCH: cursor.epoch,
        CURSOR: str(cursor.offset),
        _POSITION: str(cursor.lsn),
        _COPIED_AT: str(Lsn(cursor.copied_at)),
    }


def cursor_property(cursor: Cursor, snapshot_id: int | None) -> dict[str, str]:
    return {CURSOR: msgspec.json.encode(_CursorProperty(cursor, snapshot_id)).decode()}


def find_cursor(table: IcebergTable, owner: Owner) -> Cursor | None:
    """The cursor of the newest snapshot of ours among main's ancestors, else the property; None: neither is there."""
    for snapshot in table.ancestors(table.head()):
        summary = snapshot.summary
        if CURSOR in summary and (summary.get(_PIPELINE), summary.get(_GROUP)) == (owner.pipeline, owner.group):
            return Cursor(
                epoch=summary[_EPOCH],
                offset=int(summary[CURSOR]),
                position=Lsn.parse(summary[_POSITION]),
                copied_at=Lsn.parse(summary.get(_COPIED_AT, "0/0")),
            )
    return _stored_cursor(table)


def copies_in(table: IcebergTable) -> set[Lsn]:
    """The positions of all first copies that are, or were, part of the table."""
    return {
        Lsn.parse(snapshot.summary[_COPIED_AT])
        for snapshot in table.ancestors(table.head())
        if _COPIED_AT in snapshot.summary
    }


def _stored_cursor(table: IcebergTable) -> Cursor | None:
    """The property counts only if its snapshot was expired: one that is there but no ancestor was rolled back."""
    text = table.properties().get(CURSOR)
    if text is None:
        return None
    stored = msgspec.json.decode(text, type=_CursorProperty)
    rolled_back = stored.snapshot_id is not None and table.snapshot(stored.snapshot_id) is not None
    return None if rolled_back else stored.cursor


def holds_commit(table: IcebergTable, commit_id: str, *, since: int | None) -> bool:
    """Whether a commit is among main's ancestors that came after the snapshot `since`."""
    newer = takewhile(lambda snapshot: snapshot.id != since, table.ancestors(table.head()))
    return any(snapshot.summary.get(COMMIT_ID) == commit_id for snapshot in newer)
