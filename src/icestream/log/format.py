"""The staged file: a batch of changes of one relation version, as Parquet.

`_op`, `_lsn`, `_ts`, `_xid`, `_unchanged_cols`, then `_data` and `_old` with one text field per source column.
The rows lie in commit order; the relation travels in the file's metadata.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from icestream.errors import StorageError
from icestream.model import change
from icestream.model.table import Profile, Relation

RELATION_KEY: Final = b"icestream.relation"
PLACEHOLDER: Final = "_no_columns"  # Parquet has no struct without fields

ROW_GROUP_ROWS: Final = 65_536  # bounds what a reader holds, and lets Spark divide a large file

# Dictionaries and a higher level cost more time on text of changing rows than they save in bytes.
_WRITER_OPTIONS: Final[dict[str, Any]] = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": [change.OP],
    "write_statistics": [change.LSN],
    "store_schema": False,
}
_UNCHANGED_TYPE: Final = pa.list_(pa.string())


@dataclass(frozen=True)
class RowBatch:
    """Changes of one relation version, in order; all arrays have one entry per change."""

    op: pa.StringArray
    new: pa.StructArray  # null where the change has no new row (D, T)
    old: pa.StructArray | None = None  # null where no old row or key was sent; None: nowhere
    unchanged: pa.ListArray | None = None  # names of the columns whose new value was not sent; None: nowhere
    profile: Profile = field(default_factory=Profile)

    def __len__(self) -> int:
        return len(self.op)


def row_type(relation: Relation) -> pa.StructType:
    """The type of `RowBatch.new` and `.old`: every value as PostgreSQL's text."""
    return pa.struct([pa.field(column.name, pa.string()) for column in relation.columns])


def staged_table(
    batch: RowBatch,
    relation: Relation,
    *,
    lsn: npt.NDArray[np.int64],
    ts: npt.NDArray[np.int64],
    xid: npt.NDArray[np.int64],
) -> pa.Table:
    """The batch with the position, time (microseconds since 1970) and xid of the commit each row belongs to."""
    row = row_type(relation)
    columns = {
        change.OP: batch.op,
        change.LSN: pa.array(lsn, pa.int64()),
        change.TS: pa.array(ts, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        change.XID: pa.array(xid, pa.int64()),
        change.UNCHANGED: _or_nulls(batch.unchanged, _UNCHANGED_TYPE, len(batch)),
        change.DATA: _storable(batch.new),
        change.OLD: _storable(_or_nulls(batch.old, row, len(batch))),
    }
    return pa.table(columns, metadata={RELATION_KEY: relation.to_json()})


def encode(table: pa.Table) -> pa.Buffer:
    """The bytes of the staged file."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, **_WRITER_OPTIONS) as writer:
        writer.add_key_value_metadata(table.schema.metadata)  # not implied without a stored Arrow schema
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
    return sink.getvalue()


def relation_of(metadata: pq.FileMetaData | pa.Schema) -> Relation:
    """The relation a staged file was written under. Raises StorageError if the file is not one of ours."""
    stored = (metadata.metadata or {}).get(RELATION_KEY)
    if stored is None:
        raise StorageError(f"not a staged file: its metadata has no {RELATION_KEY.decode()!r}")
    return Relation.from_json(stored)


def _or_nulls(array: pa.Array | None, kind: pa.DataType, length: int) -> pa.Array:
    return pa.nulls(length, kind) if array is None else array


def _storable(rows: pa.StructArray) -> pa.StructArray:
    if rows.type.num_fields:
        return rows
    kind = pa.struct([pa.field(PLACEHOLDER, pa.string())])
    validity = None if rows.null_count == 0 else rows.is_valid().buffers()[1]
    return pa.Array.from_buffers(kind, len(rows), [validity], children=[pa.nulls(len(rows), pa.string())])
