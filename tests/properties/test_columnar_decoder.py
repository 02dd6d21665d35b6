"""The columnar decoder agrees with the readable one, on any rows of any relation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.errors import ProtocolError
from icestream.log.format import RowBatch
from icestream.model.table import Column, Relation
from icestream.sources.postgres.columnar import decode_rows
from icestream.sources.postgres.pgoutput import UNCHANGED, Row
from support import pgoutput_messages as raw
from support.row_reference import TRUNCATE, Expected, listed, profile, reference

XID = 4_000_000_000


@dataclass(frozen=True)
class Case:
    relation: Relation
    messages: list[bytes | memoryview]
    skip: int
    in_stream: bool

    def decode(self) -> RowBatch:
        return decode_rows(self.relation, self.messages, skip=self.skip, in_stream=self.in_stream)

    def expected(self) -> list[Expected]:
        bodies = [bytes(message[self.skip :]) for message in self.messages]
        return [reference(self.relation, body, in_stream=self.in_stream) for body in bodies]


def names() -> st.SearchStrategy[str]:
    odd = st.sampled_from(["a.b", 'quo"te', "Id", "id", " ", "ключ", "_op", "`"])
    return odd | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=5)


def texts() -> st.SearchStrategy[str]:
    """Mostly text; sometimes with bytes that are not UTF-8 (a lone surrogate stands for one)."""
    proper = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    broken = st.text(st.sampled_from("a\x80é\udce9\udcff\udcc3"), max_size=6)
    return st.one_of(st.just(""), st.text("abc123", max_size=8), proper, proper, broken)


@st.composite
def relations(draw: st.DrawFn) -> Relation:
    identity = draw(st.sampled_from("dfin"))
    columns = tuple(
        Column(name, draw(st.sampled_from([20, 25, 1700])), -1, identity == "f" or draw(st.booleans()))
        for name in draw(st.lists(names(), max_size=40, unique=True))
    )
    return Relation(draw(st.integers(1, 2**32 - 1)), "public", "t", identity, columns)


@st.composite
def row_messages(draw: st.DrawFn, relation: Relation, xid: int | None) -> bytes:
    def row(*, key_only: bool = False, unchanged: bool = False) -> Row:
        kinds = [st.none(), texts(), *([st.just(UNCHANGED)] if unchanged else [])]
        value = st.one_of(*kinds)
        return tuple(draw(value) if column.is_key or not key_only else None for column in relation.columns)

    oid = relation.oid
    match draw(st.sampled_from(["insert", "update", "update K", "update O", "delete K", "delete O", "truncate"])):
        case "insert":
            return raw.insert(oid, row(), xid)
        case "update":
            return raw.update(oid, row(unchanged=True), xid=xid)
        case "update K" | "update O" as kind:
            old = row(key_only=kind[-1] == "K")
            new = old if draw(st.booleans()) else row(unchanged=True)
            return raw.update(oid, new, old, kind[-1], xid)
        case "delete K" | "delete O" as kind:
            return raw.delete(oid, row(key_only=kind[-1] == "K"), kind[-1], xid)
        case _:
            return TRUNCATE


@st.composite
def cases(draw: st.DrawFn) -> Case:
    relation = draw(relations())
    in_stream = draw(st.booleans())
    skip = draw(st.sampled_from([0, 0, 1, 25]))
    rows = draw(st.lists(row_messages(relation, XID if in_stream else None), max_size=12))
    return Case(relation, [draw(st.binary(min_size=skip, max_size=skip)) + row for row in rows], skip, in_stream)


@given(cases())
def test_columns_hold_what_the_rows_say(case: Case) -> None:
    batch = case.decode()
    expected = case.expected()

    assert batch.op.to_pylist() == [change.op for change in expected]
    assert batch.new.to_pylist() == [change.new for change in expected]
    assert listed(batch.old, len(expected)) == [change.old for change in expected]
    assert listed(batch.unchanged, len(expected)) == [change.unchanged for change in expected]
    assert batch.profile == profile(expected)


@given(cases())
def test_arrays_are_valid_arrow(case: Case) -> None:
    batch = case.decode()
    for array in (batch.op, batch.new, batch.old, batch.unchanged):
        if array is not None:
            assert len(array) == len(case.messages) == len(batch)
            array.validate(full=True)


@given(cases())
def test_memoryviews_are_decoded_like_bytes(case: Case) -> None:
    views = replace(case, messages=[memoryview(message) for message in case.messages])
    assert views.decode() == case.decode()


@given(cases(), st.data())
def test_damaged_messages_are_refused_exactly_when_the_readable_decoder_refuses_them(
    case: Case, data: st.DataObject
) -> None:
    if not case.messages:
        return
    index = data.draw(st.integers(0, len(case.messages) - 1))
    case.messages[index] = data.draw(damaged(bytes(case.messages[index])))
    try:
        expected = case.expected()
    except ProtocolError:
        with pytest.raises(ProtocolError, match=f"row message {index + 1} of {len(case.messages)} of public.t"):
            case.decode()
    else:
        batch = case.decode()
        assert batch.new.to_pylist() == [change.new for change in expected]


@st.composite
def damaged(draw: st.DrawFn, message: bytes) -> bytes:
    cut = draw(st.integers(0, len(message)))
    shortened = message[:cut]
    flipped = bytearray(message)
    flipped[min(cut, len(message) - 1)] = draw(st.sampled_from(b"\x00\x01\x7f\xffIUDTNKOtnub"))
    return draw(st.sampled_from([shortened, bytes(flipped), message + b"\0"]))
