"""Raw pgoutput messages, byte by byte, for tests and benchmarks of the decoders."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from icestream.model.table import Relation
from icestream.sources.postgres.pgoutput import POSTGRES_EPOCH_MICROS, UNCHANGED, Value


def begin(final_lsn: int, commit_ts: int, xid: int) -> bytes:
    return b"B" + struct.pack(">QqI", final_lsn, commit_ts - POSTGRES_EPOCH_MICROS, xid)


def commit(commit_lsn: int, end_lsn: int, commit_ts: int, flags: int = 0) -> bytes:
    return b"C" + _commit_body(commit_lsn, end_lsn, commit_ts, flags)


def origin(lsn: int, name: str) -> bytes:
    return b"O" + struct.pack(">Q", lsn) + string(name)


def relation_message(relation: Relation, xid: int | None = None) -> bytes:
    schema = "" if relation.schema == "pg_catalog" else relation.schema
    header = b"R" + _xid(xid) + struct.pack(">I", relation.oid) + string(schema) + string(relation.name)
    columns = b"".join(
        struct.pack(">B", column.is_key) + string(column.name) + struct.pack(">Ii", column.type_oid, column.typmod)
        for column in relation.columns
    )
    return header + relation.identity.encode() + struct.pack(">H", len(relation.columns)) + columns


def type_message(oid: int, schema: str, name: str, xid: int | None = None) -> bytes:
    return b"Y" + _xid(xid) + struct.pack(">I", oid) + string(schema) + string(name)


def insert(oid: int, new: Sequence[Value], xid: int | None = None) -> bytes:
    return b"I" + _xid(xid) + struct.pack(">I", oid) + b"N" + row(new)


def update(
    oid: int, new: Sequence[Value], old: Sequence[Value] | None = None, mark: str = "K", xid: int | None = None
) -> bytes:
    before = b"" if old is None else mark.encode() + row(old)
    return b"U" + _xid(xid) + struct.pack(">I", oid) + before + b"N" + row(new)


def delete(oid: int, old: Sequence[Value], mark: str = "K", xid: int | None = None) -> bytes:
    return b"D" + _xid(xid) + struct.pack(">I", oid) + mark.encode() + row(old)


def truncate(oids: Sequence[int], options: int = 0, xid: int | None = None) -> bytes:
    return b"T" + _xid(xid) + struct.pack(f">IB{len(oids)}I", len(oids), options, *oids)


def logical_message(prefix: str, content: bytes, lsn: int, flags: int = 1, xid: int | None = None) -> bytes:
    header = b"M" + _xid(xid) + struct.pack(">BQ", flags, lsn)
    return header + string(prefix) + struct.pack(">I", len(content)) + content


def stream_start(xid: int, first_segment: bool) -> bytes:
    return b"S" + struct.pack(">IB", xid, first_segment)


def stream_stop() -> bytes:
    return b"E"


def stream_commit(xid: int, commit_lsn: int, end_lsn: int, commit_ts: int) -> bytes:
    return b"c" + struct.pack(">I", xid) + _commit_body(commit_lsn, end_lsn, commit_ts, 0)


def stream_abort(xid: int, subxid: int) -> bytes:
    return b"A" + struct.pack(">II", xid, subxid)


def string(text: str) -> bytes:
    return text.encode() + b"\0"


def row(values: Sequence[Value]) -> bytes:
    return struct.pack(">H", len(values)) + b"".join(map(_value, values))


def _value(value: Value) -> bytes:
    if value is None:
        return b"n"
    if value is UNCHANGED:
        return b"u"
    kind, data = (b"b", value) if isinstance(value, bytes) else (b"t", value.encode("utf-8", "surrogateescape"))
    return kind + struct.pack(">I", len(data)) + data


def _commit_body(commit_lsn: int, end_lsn: int, commit_ts: int, flags: int) -> bytes:
    return struct.pack(">BQQq", flags, commit_lsn, end_lsn, commit_ts - POSTGRES_EPOCH_MICROS)


def _xid(xid: int | None) -> bytes:
    return b"" if xid is None else struct.pack(">I", xid)
