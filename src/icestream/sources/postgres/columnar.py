"""Row messages to Arrow arrays, all rows at once, one column at a time.

The messages lie in one buffer. Each row has a position in it, and one step moves all positions over one
column: NumPy reads the kind and length of that value in every row, Arrow copies the bytes. No Python runs per row.
`pgoutput.parse` is the readable description of the same format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icestream.errors import ProtocolError
from icestream.log.format import RowBatch, row_type
from icestream.model.table import Profile, Relation
from icestream.sources.postgres import pgoutput

Bytes: TypeAlias = npt.NDArray[np.uint8]
Positions: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

_INSERT, _UPDATE, _DELETE, _TRUNCATE = b"IUDT"
_NEW, _KEY, _OLD = b"NKO"
_TEXT, _NULL, _UNCHANGED = b"tnu"
_FULL_IDENTITY: Final = "f"
_OID_SIZE: Final = 4
_XID_SIZE: Final = 4
_MARK_AND_WIDTH: Final = 3
_LARGEST_BATCH: Final = 2**31 - 1  # Arrow's string offsets


def decode_rows(
    relation: Relation, messages: Sequence[bytes | memoryview], *, skip: int = 0, in_stream: bool = False
) -> RowBatch:
    """As `decode_buffer`, for messages that lie apart. skip: bytes before the type byte in each, as inside XLogData."""
    sizes = np.fromiter(map(len, messages), np.int64, len(messages))
    return decode_buffer(relation, b"".join(messages), sizes, skip=skip, in_stream=in_stream)


def decode_buffer(
    relation: Relation, data: bytes | bytearray, sizes: Positions, *, skip: int = 0, in_stream: bool = False
) -> RowBatch:
    """Decode Insert, Update and Delete messages of one relation version that lie back to back in `data`.

    A message that begins with `T` stands for a truncate, whatever follows. The result holds no reference to `data`.
    in_stream: the messages carry the xid of a streamed subtransaction after their type byte.

    An unchanged TOAST value is taken from the old row where that was sent, else its column is listed in `unchanged`.
    Text that is not UTF-8 is repaired with replacement characters. Raises ProtocolError if a message is malformed.
    """
    if len(data) > _LARGEST_BATCH:
        raise ValueError(f"a batch of {len(data)} bytes is too large to decode at once; at most {_LARGEST_BATCH}")
    try:
        return _decode(relation, _Messages(data, sizes, skip, in_stream))
    except _Malformed:
        _explain(relation, data, sizes, skip, in_stream)
        raise


class _Malformed(ProtocolError):
    """Some message is not right; which one is looked up afterwards, row by row."""

    def __init__(self) -> None:
        super().__init__("a row message is not as its relation says")


def _require(ok: bool | np.bool_) -> None:
    if not ok:
        raise _Malformed


class _Messages:
    """All messages in one buffer: where each one lies, and what it is.

    What is read beyond the buffer's end is not what a message says, but its position gives it away afterwards.
    """

    def __init__(self, data: bytes | bytearray, sizes: Positions, skip: int, in_stream: bool) -> None:
        _require((sizes > skip).all() and sizes.sum() == len(data))
        self.data = pa.py_buffer(data)
        self._bytes: Bytes = np.frombuffer(data, np.uint8)
        # Four bytes from any position, aligned or not.
        self._words = np.ndarray(max(len(data) - 3, 0), np.dtype(">u4"), data, strides=(1,))
        self.end: Positions = np.cumsum(sizes)
        self.start: Positions = self.end - sizes + skip
        self.op = self.uint8(self.start)
        self.mark_at: Positions = self.start + (1 + (_XID_SIZE if in_stream else 0) + _OID_SIZE)
        _require(((self.op == _TRUNCATE) | (self.mark_at + _MARK_AND_WIDTH <= self.end)).all())
        self.mark = self.uint8(self.mark_at)

    def __len__(self) -> int:
        return len(self.op)

    def uint8(self, at: Positions) -> Bytes:
        return self._bytes.take(at, mode="clip") if len(at) else np.empty(0, np.uint8)

    def uint32(self, at: Positions) -> Positions:
        return self._words[np.minimum(at, len(self._words) - 1)].astype(np.int64)

    def uint16(self, at: Positions) -> Positions:
        return self.uint8(at).astype(np.int64) << 8 | self.uint8(at + 1)


@dataclass
class _Values:
    """Where the values of one column lie in the buffer, for some rows; a value that was not sent is empty."""

    kind: Bytes
    start: Positions
    end: Positions


class _Tuples:
    """One tuple of each of the given rows, walked one column at a time."""

    def __init__(self, messages: _Messages, rows: Positions, at: Positions, width: int) -> None:
        self.position = at + 2
        self._messages = messages
        self._limit = messages.end[rows]
        self._width = width
        _require((messages.uint16(at) == width).all())

    def columns(self) -> Iterator[_Values]:
        for _ in range(self._width):
            yield self._column()

    def _column(self) -> _Values:
        kind = self._messages.uint8(self.position)
        start = self.position + 5
        end = start + self._messages.uint32(self.position + 1)
        bare = kind != _TEXT
        if bare.any():
            _require(np.isin(kind[bare], (_NULL, _UNCHANGED)).all())
            start[bare] -= 4
            end[bare] = start[bare]
        _require((end <= self._limit).all())
        self.position = end
        return _Values(kind, start, end)


class _Gather:
    """Copies the bytes of a column out of the buffer, and puts nulls at the rows that have no tuple.

    The values of a column and the gaps between them, taken together, are an Arrow array over the buffer as it is:
    every second entry of it is a value. So the copy is Arrow's `take`.
    """

    def __init__(self, messages: _Messages, rows: Positions) -> None:
        count = len(messages)
        self._data = messages.data
        self._count = count
        self._rows = rows
        self._complete = len(rows) == count
        self._bounds = np.empty(2 * count + 1, np.int32)
        self._bounds[:-1:2] = self._bounds[1::2] = messages.start
        self._bounds[-1] = messages.end[-1] if count else 0
        self._every_second = pa.array(np.arange(0, 2 * count, 2, dtype=np.int32))

    def strings(self, values: _Values) -> pa.StringArray:
        starts, ends = self._bounds[:-1:2], self._bounds[1::2]
        if self._complete:
            starts[:], ends[:] = values.start, values.end
        else:
            starts[self._rows], ends[self._rows] = values.start, values.end
        bounds = pa.py_buffer(self._bounds)
        pieces = pa.Array.from_buffers(pa.string(), 2 * self._count, [None, bounds, self._data])
        _, offsets, data = pieces.take(self._every_second).buffers()
        validity = self._validity(values.kind == _TEXT)
        return _valid_utf8(pa.Array.from_buffers(pa.string(), self._count, [validity, offsets, data]))

    def structs(self, kind: pa.StructType, columns: list[pa.StringArray]) -> pa.StructArray:
        validity = self._validity(np.ones(len(self._rows), np.bool_))
        return pa.Array.from_buffers(kind, self._count, [validity], children=columns)

    def _validity(self, present: Bools) -> pa.Buffer | None:
        if not self._complete:
            every = np.zeros(self._count, np.bool_)
            every[self._rows] = present
            present = every
        return None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))


def _valid_utf8(strings: pa.StringArray) -> pa.StringArray:
    data = strings.buffers()[2]
    if not data or np.frombuffer(data, np.uint8).max() < 0x80:
        return strings
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        values = strings.view(pa.binary()).to_pylist()
        return pa.array([None if v is None else v.decode("utf-8", "replace") for v in values], pa.string())
    return strings


def _decode(relation: Relation, messages: _Messages) -> RowBatch:
    kind = row_type(relation)
    updated, deleted = messages.op == _UPDATE, messages.op == _DELETE
    has_old = deleted | (updated & (messages.mark != _NEW))
    has_new = updated | (messages.op == _INSERT)
    _check_marks(messages, has_old)

    new_mark_at = messages.mark_at.copy()
    old = None
    if has_old.any():
        old_rows = np.flatnonzero(has_old)
        old, new_mark_at[old_rows] = _old_rows(kind, messages, old_rows)
        _require((new_mark_at[deleted] == messages.end[deleted]).all())
        _require((messages.uint8(new_mark_at[has_new]) == _NEW).all())
    new, unchanged = _new_rows(kind, messages, np.flatnonzero(has_new), new_mark_at, old)

    rekeyed = 0 if old is None else _count_rekeyed(relation, np.flatnonzero(updated & has_old), old, new)
    profile = _profile(messages.op, rekeyed, 0 if unchanged is None else len(unchanged) - unchanged.null_count)
    return RowBatch(_ops(messages.op), new, old, unchanged, profile)


def _check_marks(messages: _Messages, has_old: Bools) -> None:
    _require(np.isin(messages.op, (_INSERT, _UPDATE, _DELETE, _TRUNCATE)).all())
    _require((messages.mark[messages.op == _INSERT] == _NEW).all())
    _require(np.isin(messages.mark[has_old], (_KEY, _OLD)).all())


def _old_rows(kind: pa.StructType, messages: _Messages, rows: Positions) -> tuple[pa.StructArray, Positions]:
    """The old rows and keys, and where each of them ends."""
    tuples = _Tuples(messages, rows, messages.mark_at[rows] + 1, kind.num_fields)
    gather = _Gather(messages, rows)
    columns = [gather.strings(values) for values in tuples.columns()]
    return gather.structs(kind, columns), tuples.position


def _new_rows(
    kind: pa.StructType, messages: _Messages, rows: Positions, mark_at: Positions, old: pa.StructArray | None
) -> tuple[pa.StructArray, pa.ListArray | None]:
    """The new rows, and the names of the columns that neither they nor the old rows tell."""
    tuples = _Tuples(messages, rows, mark_at[rows] + 1, kind.num_fields)
    gather = _Gather(messages, rows)
    columns = []
    missing = {}
    for index, values in enumerate(tuples.columns()):
        strings = gather.strings(values)
        unsent = rows[values.kind == _UNCHANGED]
        if len(unsent):
            strings, unsent = _filled(strings, unsent, None if old is None else old.field(index))
        if len(unsent):
            missing[index] = unsent
        columns.append(strings)
    _require((tuples.position == messages.end[rows]).all())
    return gather.structs(kind, columns), _column_lists(kind, missing, len(messages)) if missing else None


def _filled(strings: pa.StringArray, unsent: Positions, old: pa.StringArray | None) -> tuple[pa.StringArray, Positions]:
    """Unsent values from the old row, and the rows for which even that does not help.

    A TOASTed value is never null, so a null in the old row means that the old row does not tell it either. (A partition
    may have another replica identity than its root, whose identity the message claims.)
    """
    if old is None:
        return strings, unsent
    known = old.is_valid().to_numpy(zero_copy_only=False)[unsent]
    fill = np.zeros(len(strings), np.bool_)
    fill[unsent[known]] = True
    return pc.if_else(pa.array(fill), old, strings), unsent[~known]


def _column_lists(kind: pa.StructType, rows_by_column: dict[int, Positions], count: int) -> pa.ListArray:
    """For each row the list of its columns in `rows_by_column`; null instead of an empty list."""
    rows = np.concatenate(list(rows_by_column.values()))
    columns = np.repeat(list(rows_by_column), [len(rows) for rows in rows_by_column.values()])
    names = pa.array([field.name for field in kind], pa.string())
    lengths = np.bincount(rows, minlength=count)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    # Stable, so that the columns of a row stay in the order of the table.
    values = names.take(pa.array(columns[np.argsort(rows, kind="stable")]))
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(lengths == 0))


def _count_rekeyed(relation: Relation, rows: Positions, old: pa.StructArray, new: pa.StructArray) -> int:
    if relation.identity == _FULL_IDENTITY:  # every column counts as key there, which says nothing
        return len(rows)
    picked = pa.array(rows)
    differs = np.zeros(len(rows), np.bool_)
    for index, column in enumerate(relation.columns):
        if column.is_key:
            before, after = old.field(index).take(picked), new.field(index).take(picked)
            unequal = pc.not_equal(before, after).fill_null(False)
            one_null = pc.xor(before.is_null(), after.is_null())
            differs |= pc.or_(unequal, one_null).to_numpy(zero_copy_only=False)
    return int(np.count_nonzero(differs))


def _ops(op: Bytes) -> pa.StringArray:
    offsets = np.arange(len(op) + 1, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(op), [None, pa.py_buffer(offsets), pa.py_buffer(op)])


def _profile(op: Bytes, rekeyed: int, unchanged: int) -> Profile:
    counts = np.bincount(op, minlength=256)
    return Profile(
        inserts=int(counts[_INSERT]),
        updates=int(counts[_UPDATE]),
        deletes=int(counts[_DELETE]),
        truncates=int(counts[_TRUNCATE]),
        rekeyed=rekeyed,
        unchanged=unchanged,
    )


def _explain(relation: Relation, data: bytes | bytearray, sizes: Positions, skip: int, in_stream: bool) -> None:
    """Raise what is wrong with the first malformed message."""
    end = 0
    for number, size in enumerate(sizes.tolist(), start=1):
        start, end = end, end + size
        which = f"row message {number} of {len(sizes)} of {relation.table}"
        try:
            complaint = _complaint(relation, bytes(data[start + skip : end]), in_stream)
        except ProtocolError as err:
            raise ProtocolError(f"{which} cannot be read") from err
        if complaint:
            raise ProtocolError(f"{which} {complaint}")


def _complaint(relation: Relation, message: bytes, in_stream: bool) -> str | None:
    if message[:1] == b"T":
        return None
    match pgoutput.parse(message, in_stream=in_stream):
        case pgoutput.Insert(new=new):
            rows = [new]
        case pgoutput.Update(new=new, old=old):
            rows = [new] if old is None else [old, new]
        case pgoutput.Delete(old=old):
            rows = [old]
        case other:
            return f"is of another kind: {type(other).__name__}"
    for row in rows:
        if len(row) != len(relation.columns):
            return f"has {len(row)} values, its relation {len(relation.columns)} columns"
        if any(isinstance(value, bytes) for value in row):
            return "has a binary value, but only text was asked for"
    return None
