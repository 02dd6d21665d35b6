"""What a row message says, by the readable decoder, one message at a time."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from icestream.errors import ProtocolError
from icestream.model.table import Profile, Relation
from icestream.sources.postgres import pgoutput
from icestream.sources.postgres.pgoutput import UNCHANGED, Row

TRUNCATE = b"T"

Named = dict[str, str | None]


@dataclass(frozen=True)
class Expected:
    op: str
    new: Named | None = None
    old: Named | None = None
    unchanged: list[str] | None = None
    rekeyed: bool = False


def reference(relation: Relation, message: bytes, *, in_stream: bool) -> Expected:
    """Raises ProtocolError where the message is not a row of the relation."""
    if message[:1] == TRUNCATE:
        return Expected("T")
    match pgoutput.parse(message, in_stream=in_stream):
        case pgoutput.Insert(new=new):
            return Expected("I", *_merged(relation, new, None))
        case pgoutput.Update(new=new, old=old):
            values, before, unchanged = _merged(relation, new, old)
            return Expected("U", values, before, unchanged, _is_rekeyed(relation, values, before))
        case pgoutput.Delete(old=old):
            return Expected("D", None, _named(relation, old))
        case other:
            raise ProtocolError(f"{other} is not a row message")


def profile(changes: list[Expected]) -> Profile:
    ops = [change.op for change in changes]
    return Profile(
        inserts=ops.count("I"),
        updates=ops.count("U"),
        deletes=ops.count("D"),
        truncates=ops.count("T"),
        rekeyed=sum(change.rekeyed for change in changes),
        unchanged=sum(change.unchanged is not None for change in changes),
    )


def listed(array: pa.Array | None, length: int) -> list[object]:
    return [None] * length if array is None else array.to_pylist()


def _merged(relation: Relation, new: Row, old: Row | None) -> tuple[Named, Named | None, list[str] | None]:
    values = _named(relation, new)
    before = None if old is None else _named(relation, old)
    unchanged = []
    for column, value in zip(relation.columns, new, strict=True):
        if value is UNCHANGED:
            values[column.name] = (before or {}).get(column.name)
            if values[column.name] is None:
                unchanged.append(column.name)
    return values, before, unchanged or None


def _named(relation: Relation, row: Row) -> Named:
    if len(row) != len(relation.columns) or any(isinstance(value, bytes) for value in row):
        raise ProtocolError("a row of another relation")
    return {
        column.name: value if isinstance(value, str) else None
        for column, value in zip(relation.columns, row, strict=True)
    }


def _is_rekeyed(relation: Relation, new: Named, old: Named | None) -> bool:
    if old is None or relation.identity == "f":
        return old is not None
    return any(new[column.name] != old[column.name] for column in relation.columns if column.is_key)
