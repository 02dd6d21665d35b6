"""The staged file for people who read it themselves (`sink.staging_format: json`): six columns, the row as JSON.

`_data` is an object with PostgreSQL's text of each column: the new row, of a delete the old row or its key, of a
truncate nothing. Columns whose value was not sent are left out, and named in `_unchanged_cols`. An update that carries
an old row, or an old key, has it under `_old`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from icestream.model import change
from icestream.model.change import Op
from icestream.model.table import Relation

# Names, types and ids are those of pg2iceberg's staged files.
_SCHEMA: Final = pa.schema(
    [
        pa.field(name, kind, nullable=nullable, metadata={"PARQUET:field_id": str(number)})
        for name, kind, nullable, number in (
            (change.OP, pa.string(), False, 1),
            (change.LSN, pa.int64(), False, 2),
            (change.TS, pa.timestamp("us", tz="UTC"), False, 3),
            (change.XID, pa.int64(), True, 6),
            (change.UNCHANGED, pa.string(), True, 4),
            (change.DATA, pa.large_string(), False, 5),
        )
    ]
)


def as_documents(staged: pa.Table, relation: Relation) -> pa.Table:
    """A table of `log.format.staged_table` in the six columns."""
    columns = {
        **{name: staged[name] for name in (change.OP, change.LSN, change.TS, change.XID)},
        change.UNCHANGED: pa.array(map(_joined, staged[change.UNCHANGED].to_pylist()), pa.string()),
        change.DATA: pa.array(_documents(staged, relation), pa.large_string()),
    }
    return pa.table(columns, schema=_SCHEMA).replace_schema_metadata(staged.schema.metadata)


def old_name(relation: Relation) -> str:
    """What an update's old row is called in the document: `_old`, unless a column is called so."""
    taken, name = {column.name for column in relation.columns}, change.OLD
    while name in taken:
        name = "_" + name
    return name


def _documents(staged: pa.Table, relation: Relation) -> Iterator[str]:
    encode, old_key = msgspec.json.Encoder().encode, old_name(relation)
    names = [column.name for column in relation.columns]
    keys = [column.name for column in relation.columns if column.is_key]
    columns = (staged[name].to_pylist() for name in (change.OP, change.UNCHANGED, change.DATA, change.OLD))
    for op, unchanged, new, old in zip(*columns, strict=True):
        if op == Op.DELETE:
            document: dict[str, Any] = _part(old, keys)
        elif op == Op.TRUNCATE:
            document = {}
        else:
            document = _part(new, [name for name in names if name not in unchanged] if unchanged else names)
            if old is not None:
                document[old_key] = _part(old, keys)
        yield encode(document).decode()


def _part(row: dict[str, str | None], names: Sequence[str]) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _joined(names: Sequence[str] | None) -> str | None:
    return None if names is None else ",".join(names)
