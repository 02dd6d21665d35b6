"""The messages of PostgreSQL's pgoutput plugin, protocol versions 1 and 2, read one at a time.

In production this reads everything that is not a row; rows are read by `columnar`, which has to agree with this.
Inside a streamed block (Stream Start … Stream Stop) the messages that belong to a subtransaction carry its xid.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from icestream.errors import ProtocolError
from icestream.model.position import Lsn
from icestream.model.table import Column, Relation

POSTGRES_EPOCH_MICROS: Final = 946_684_800_000_000  # 2000-01-01, counted from 1970-01-01


class Unchanged(enum.Enum):
    """A TOASTed value that an update did not touch; PostgreSQL does not send it."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED

Value: TypeAlias = str | bytes | Unchanged | None
Row: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Begin:
    final_lsn: Lsn
    commit_ts: int  # microseconds since 1970
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    flags: int
    commit_lsn: Lsn
    end_lsn: Lsn
    commit_ts: int


@dataclass(frozen=True, slots=True)
class Origin:
    lsn: Lsn
    name: str


@dataclass(frozen=True, slots=True)
class RelationMessage:
    relation: Relation
    xid: int | None = None


@dataclass(frozen=True, slots=True)
class Type:
    oid: int
    schema: str
    name: str
    xid: int | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    relation_oid: int
    new: Row
    xid: int | None = None


@dataclass(frozen=True, slots=True)
class Update:
    relation_oid: int
    new: Row
    old: Row | None = None
    old_is_key: bool = False
    xid: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    relation_oid: int
    old: Row
    old_is_key: bool
    xid: int | None = None


@dataclass(frozen=True, slots=True)
class Truncate:
    relation_oids: tuple[int, ...]
    cascade: bool
    restart_identity: bool
    xid: int | None = None


@dataclass(frozen=True, slots=True)
class LogicalMessage:
    transactional: bool
    lsn: Lsn
    prefix: str
    content: bytes
    xid: int | None = None


@dataclass(frozen=True, slots=True)
class StreamStart:
    xid: int
    first_segment: bool


@dataclass(frozen=True, slots=True)
class StreamStop:
    pass


@dataclass(frozen=True, slots=True)
class StreamCommit:
    xid: int
    flags: int
    commit_lsn: Lsn
    end_lsn: Lsn
    commit_ts: int


@dataclass(frozen=True, slots=True)
class StreamAbort:
    """Of the whole transaction where `subxid` equals `xid`, else of that subtransaction only."""

    xid: int
    subxid: int


Message: TypeAlias = (
    Begin
    | Commit
    | Origin
    | RelationMessage
    | Type
    | Insert
    | Update
    | Delete
    | Truncate
    | LogicalMessage
    | StreamStart
    | StreamStop
    | StreamCommit
    | StreamAbort
)


def parse(message: bytes | memoryview, *, in_stream: bool) -> Message:
    """One message, from its type byte on. `in_stream`: it came between Stream Start and Stream Stop.

    Raises ProtocolError for an unknown type, a message that ends too early or too late, or an impossible mark.
    """
    reader = _Reader(message)
    kind = reader.mark("the message type")
    if kind in _PLAIN:
        parsed = _PLAIN[kind](reader)
    elif kind in _IN_SUBTRANSACTION:
        parsed = _IN_SUBTRANSACTION[kind](reader, reader.uint32("the xid") if in_stream else None)
    else:
        raise reader.error("unknown message type")
    reader.finish()
    return parsed


class _Reader:
    """Takes fields off a message; every field is named, so that an error can say where it happened."""

    __slots__ = ("_at", "_data")

    def __init__(self, message: bytes | memoryview) -> None:
        self._data = bytes(message)
        self._at = 0

    def mark(self, what: str) -> str:
        return chr(self.uint8(what))

    def uint8(self, what: str) -> int:
        return self._number(_UINT8, what)

    def uint16(self, what: str) -> int:
        return self._number(_UINT16, what)

    def int32(self, what: str) -> int:
        return self._number(_INT32, what)

    def uint32(self, what: str) -> int:
        return self._number(_UINT32, what)

    def lsn(self, what: str) -> Lsn:
        return Lsn(self._number(_UINT64, what))

    def timestamp(self, what: str) -> int:
        return self._number(_INT64, what) + POSTGRES_EPOCH_MICROS

    def string(self, what: str) -> str:
        end = self._data.find(0, self._at)
        if end < 0:
            raise self.error(f"{what} has no end")
        start, self._at = self._at, end + 1
        return _text(self._data[start:end])

    def block(self, what: str) -> bytes:
        """A length and that many bytes."""
        length = self.uint32(f"the length of {what}")
        end = self._at + length
        if end > len(self._data):
            raise self.error(f"{what} should have {length} bytes, {len(self._data) - self._at} are left")
        start, self._at = self._at, end
        return self._data[start:end]

    def finish(self) -> None:
        if self._at != len(self._data):
            raise self.error(f"{len(self._data) - self._at} bytes are left over")

    def error(self, problem: str) -> ProtocolError:
        kind = chr(self._data[0]) if self._data else ""
        return ProtocolError(f"pgoutput message {kind!r} of {len(self._data)} bytes, at byte {self._at}: {problem}")

    def _number(self, layout: struct.Struct, what: str) -> int:
        end = self._at + layout.size
        if end > len(self._data):
            raise self.error(f"ends inside {what}")
        (number,) = layout.unpack_from(self._data, self._at)
        self._at = end
        return int(number)


_UINT8 = struct.Struct(">B")
_UINT16 = struct.Struct(">H")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_INT64 = struct.Struct(">q")
_UINT64 = struct.Struct(">Q")


def _text(data: bytes) -> str:
    # A database in SQL_ASCII may send any bytes; a replaced character is better than a stream that stops.
    return data.decode("utf-8", "replace")


def _begin(reader: _Reader) -> Begin:
    return Begin(reader.lsn("the final LSN"), reader.timestamp("the commit time"), reader.uint32("the xid"))


def _commit(reader: _Reader) -> Commit:
    flags = reader.uint8("the flags")
    return Commit(flags, reader.lsn("the commit LSN"), reader.lsn("the end LSN"), reader.timestamp("the commit time"))


def _origin(reader: _Reader) -> Origin:
    return Origin(reader.lsn("the origin's LSN"), reader.string("the origin's name"))


def _relation(reader: _Reader, xid: int | None) -> RelationMessage:
    oid = reader.uint32("the relation's oid")
    schema = reader.string("the schema") or "pg_catalog"
    name = reader.string("the relation's name")
    identity = reader.mark("the replica identity")
    columns = tuple(_column(reader) for _ in range(reader.uint16("the number of columns")))
    return RelationMessage(Relation(oid, schema, name, identity, columns), xid)


def _column(reader: _Reader) -> Column:
    is_key = bool(reader.uint8("a column's flags") & 1)
    name = reader.string("a column's name")
    return Column(name, reader.uint32("a column's type"), reader.int32("a column's type modifier"), is_key)


def _type(reader: _Reader, xid: int | None) -> Type:
    oid = reader.uint32("the type's oid")
    return Type(oid, reader.string("the schema") or "pg_catalog", reader.string("the type's name"), xid)


def _insert(reader: _Reader, xid: int | None) -> Insert:
    oid = reader.uint32("the relation's oid")
    _expect(reader, "N", reader.mark("the tuple mark"))
    return Insert(oid, _row(reader), xid)


def _update(reader: _Reader, xid: int | None) -> Update:
    oid = reader.uint32("the relation's oid")
    mark = reader.mark("the tuple mark")
    if mark not in _OLD_MARKS:
        _expect(reader, "KON", mark)
        return Update(oid, _row(reader), xid=xid)
    old = _row(reader)
    _expect(reader, "N", reader.mark("the mark of the new tuple"))
    return Update(oid, _row(reader), old, mark == "K", xid)


def _delete(reader: _Reader, xid: int | None) -> Delete:
    oid = reader.uint32("the relation's oid")
    mark = reader.mark("the tuple mark")
    _expect(reader, _OLD_MARKS, mark)
    return Delete(oid, _row(reader), mark == "K", xid)


def _truncate(reader: _Reader, xid: int | None) -> Truncate:
    count = reader.uint32("the number of relations")
    options = reader.uint8("the options")
    oids = tuple(reader.uint32("a relation's oid") for _ in range(count))
    return Truncate(oids, bool(options & 1), bool(options & 2), xid)


def _logical_message(reader: _Reader, xid: int | None) -> LogicalMessage:
    transactional = bool(reader.uint8("the flags") & 1)
    lsn = reader.lsn("the message's LSN")
    return LogicalMessage(transactional, lsn, reader.string("the prefix"), reader.block("the content"), xid)


def _stream_start(reader: _Reader) -> StreamStart:
    return StreamStart(reader.uint32("the xid"), bool(reader.uint8("the first-segment flag")))


def _stream_stop(_reader: _Reader) -> StreamStop:
    return StreamStop()


def _stream_commit(reader: _Reader) -> StreamCommit:
    xid = reader.uint32("the xid")
    commit = _commit(reader)
    return StreamCommit(xid, commit.flags, commit.commit_lsn, commit.end_lsn, commit.commit_ts)


def _stream_abort(reader: _Reader) -> StreamAbort:
    return StreamAbort(reader.uint32("the xid"), reader.uint32("the subtransaction's xid"))


def _expect(reader: _Reader, marks: str, mark: str) -> None:
    if mark not in marks:
        raise reader.error(f"expected a tuple mark of {'/'.join(marks)}, found {mark!r}")


def _row(reader: _Reader) -> Row:
    return tuple(_value(reader) for _ in range(reader.uint16("the number of values")))


def _value(reader: _Reader) -> Value:
    kind = reader.mark("the kind of a value")
    if kind == "t":
        return _text(reader.block("a text value"))
    if kind == "n":
        return None
    if kind == "u":
        return UNCHANGED
    if kind == "b":
        return reader.block("a binary value")
    raise reader.error(f"unknown kind of value {kind!r}")


_OLD_MARKS: Final = "KO"
_PLAIN: Final[dict[str, Callable[[_Reader], Message]]] = {
    "B": _begin,
    "C": _commit,
    "O": _origin,
    "S": _stream_start,
    "E": _stream_stop,
    "c": _stream_commit,
    "A": _stream_abort,
}
_IN_SUBTRANSACTION: Final[dict[str, Callable[[_Reader, int | None], Message]]] = {
    "R": _relation,
    "Y": _type,
    "I": _insert,
    "U": _update,
    "D": _delete,
    "T": _truncate,
    "M": _logical_message,
}
