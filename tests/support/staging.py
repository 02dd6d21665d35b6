"""Changes written down by hand, staged as capture would stage them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from icestream.log.documents import as_documents
from icestream.log.format import RowBatch, encode, row_type, staged_table
from icestream.log.writer import staged_path
from icestream.model.change import StagingFormat
from icestream.model.ids import new_id
from icestream.model.position import Lsn
from icestream.model.table import Profile, Relation
from icestream.state.log_entries import LogEntry

Text = Mapping[str, str | None]


@dataclass(frozen=True)
class Change:
    op: str
    new: Text | None = None
    old: Text | None = None
    unchanged: tuple[str, ...] = ()
    lsn: int = 1


def stage(
    root: Path,
    relation: Relation,
    changes: Sequence[Change],
    *,
    start: int,
    staging_format: StagingFormat = StagingFormat.COLUMNS,
) -> LogEntry:
    """One staged file and the entry that the log would have for it."""
    row = row_type(relation)
    batch = RowBatch(
        op=pa.array([change.op for change in changes], pa.string()),
        new=pa.array([_image(change.new, relation) for change in changes], row),
        old=pa.array([_image(change.old, relation) for change in changes], row),
        unchanged=pa.array([list(change.unchanged) or None for change in changes], pa.list_(pa.string())),
    )
    lsn = np.array([change.lsn for change in changes], dtype=np.int64)
    zeros = np.zeros(len(changes), dtype=np.int64)
    table = staged_table(batch, relation, lsn=lsn, ts=zeros, xid=zeros)
    buffer = encode(as_documents(table, relation) if staging_format is StagingFormat.JSON else table)
    name = staged_path("p", "t", staging_format)
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(buffer.to_pybytes())
    return LogEntry(
        table="t",
        start_offset=start,
        end_offset=start + len(changes),
        path=name,
        record_count=len(changes),
        byte_size=buffer.size,
        position=Lsn(max(change.lsn for change in changes)),
        claim_id=new_id(),
        epoch="e",
        relation_version=relation.version,
        profile=profile_of(changes, relation),
        first_commit_at=0.0,
        created_at=datetime.now(UTC),
    )


def profile_of(changes: Sequence[Change], relation: Relation) -> Profile:
    keys = [column.name for column in relation.columns if column.is_key]

    def count(op: str) -> int:
        return sum(change.op == op for change in changes)

    def is_rekeyed(change: Change) -> bool:
        if change.op != "U" or change.old is None or change.new is None:
            return False
        return relation.identity == "f" or any(change.old[key] != change.new[key] for key in keys)

    return Profile(
        inserts=count("I"),
        updates=count("U"),
        deletes=count("D"),
        truncates=count("T"),
        rekeyed=sum(map(is_rekeyed, changes)),
        unchanged=sum(bool(change.unchanged) for change in changes),
    )


def _image(text: Text | None, relation: Relation) -> dict[str, str | None] | None:
    return None if text is None else {column.name: text.get(column.name) for column in relation.columns}
