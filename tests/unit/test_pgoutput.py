from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from icestream.errors import ProtocolError
from icestream.model.position import Lsn
from icestream.model.table import Column, Relation
from icestream.sources.postgres import pgoutput
from icestream.sources.postgres.pgoutput import UNCHANGED, Message, parse
from support import pgoutput_messages as raw

TS = 1_700_000_000_123_456
LARGE_XID = 4_000_000_000
LARGE_OID = 3_000_000_000
ORDERS = Relation(
    16385,
    "public",
    "orders",
    "d",
    (Column("id", 20, -1, True), Column("näme", 1043, 24), Column("amount", 1700, 655366)),
)

OUTSIDE_OF_STREAMS = [
    (raw.begin(0x16B3748, TS, LARGE_XID), pgoutput.Begin(Lsn(0x16B3748), TS, LARGE_XID)),
    (raw.commit(0x16B3748, 0x16B3778, TS), pgoutput.Commit(0, Lsn(0x16B3748), Lsn(0x16B3778), TS)),
    (raw.origin(0x10, "elsewhere"), pgoutput.Origin(Lsn(0x10), "elsewhere")),
    (raw.stream_start(7, True), pgoutput.StreamStart(7, True)),
    (raw.stream_start(7, False), pgoutput.StreamStart(7, False)),
    (raw.stream_stop(), pgoutput.StreamStop()),
    (raw.stream_commit(7, 0x10, 0x20, TS), pgoutput.StreamCommit(7, 0, Lsn(0x10), Lsn(0x20), TS)),
    (raw.stream_abort(7, LARGE_XID), pgoutput.StreamAbort(7, LARGE_XID)),
]

WITH_XID_IN_STREAMS = [
    (lambda xid: raw.relation_message(ORDERS, xid), lambda xid: pgoutput.RelationMessage(ORDERS, xid)),
    (lambda xid: raw.type_message(LARGE_OID, "s", "mood", xid), lambda xid: pgoutput.Type(LARGE_OID, "s", "mood", xid)),
    (
        lambda xid: raw.insert(LARGE_OID, ["1", "", "zwölf", None], xid),
        lambda xid: pgoutput.Insert(LARGE_OID, ("1", "", "zwölf", None), xid),
    ),
    (
        lambda xid: raw.update(1, ["1", UNCHANGED], xid=xid),
        lambda xid: pgoutput.Update(1, ("1", UNCHANGED), xid=xid),
    ),
    (
        lambda xid: raw.update(1, ["2", "b"], ["1", None], "K", xid),
        lambda xid: pgoutput.Update(1, ("2", "b"), ("1", None), True, xid),
    ),
    (
        lambda xid: raw.update(1, ["2", "b"], ["2", "a"], "O", xid),
        lambda xid: pgoutput.Update(1, ("2", "b"), ("2", "a"), False, xid),
    ),
    (lambda xid: raw.delete(1, ["1", None], "K", xid), lambda xid: pgoutput.Delete(1, ("1", None), True, xid)),
    (lambda xid: raw.delete(1, ["1", "a"], "O", xid), lambda xid: pgoutput.Delete(1, ("1", "a"), False, xid)),
    (lambda xid: raw.truncate([1, 2], 0, xid), lambda xid: pgoutput.Truncate((1, 2), False, False, xid)),
    (lambda xid: raw.truncate([LARGE_OID], 3, xid), lambda xid: pgoutput.Truncate((LARGE_OID,), True, True, xid)),
    (
        lambda xid: raw.logical_message("icestream", b"\x00\xff", 0x30, 1, xid),
        lambda xid: pgoutput.LogicalMessage(True, Lsn(0x30), "icestream", b"\x00\xff", xid),
    ),
]


@pytest.mark.parametrize("in_stream", [False, True])
@pytest.mark.parametrize(("message", "expected"), OUTSIDE_OF_STREAMS)
def test_messages_without_xid_are_the_same_inside_streams(message: bytes, expected: Message, in_stream: bool) -> None:
    assert parse(message, in_stream=in_stream) == expected
    assert parse(memoryview(message), in_stream=in_stream) == expected


@pytest.mark.parametrize("xid", [None, LARGE_XID])
@pytest.mark.parametrize(("message", "expected"), WITH_XID_IN_STREAMS)
def test_messages_of_a_transaction_carry_their_xid_inside_streams_only(
    message: Callable[[int | None], bytes], expected: Callable[[int | None], Message], xid: int | None
) -> None:
    assert parse(message(xid), in_stream=xid is not None) == expected(xid)


def test_insert_from_literal_bytes() -> None:
    message = b"I\x00\x00\x40\x01N\x00\x03t\x00\x00\x00\x02\xc3\xa9nu"
    assert parse(message, in_stream=False) == pgoutput.Insert(0x4001, ("é", None, UNCHANGED))


def test_begin_from_literal_bytes() -> None:
    message = b"B\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x09"
    assert parse(message, in_stream=False) == pgoutput.Begin(Lsn.parse("1/2"), 946_684_800_000_005, 9)


def test_relation_from_literal_bytes() -> None:
    message = b"R\x00\x00\x40\x01public\0t\0f\x00\x01\x01id\0\x00\x00\x00\x17\xff\xff\xff\xff"
    relation = Relation(0x4001, "public", "t", "f", (Column("id", 23, -1, True),))
    assert parse(message, in_stream=False) == pgoutput.RelationMessage(relation)


def test_empty_schema_means_pg_catalog() -> None:
    relation = Relation(1, "pg_catalog", "t", "d", ())
    assert parse(raw.relation_message(relation), in_stream=False) == pgoutput.RelationMessage(relation)
    assert parse(raw.type_message(1, "", "mood"), in_stream=False) == pgoutput.Type(1, "pg_catalog", "mood")


def test_relation_survives_its_metadata_form() -> None:
    assert Relation.from_json(ORDERS.to_json()) == ORDERS


def test_binary_values_stay_bytes() -> None:
    assert parse(raw.insert(1, [b"\x00\x01"]), in_stream=False) == pgoutput.Insert(1, (b"\x00\x01",))


def test_text_that_is_not_utf8_is_repaired() -> None:
    assert parse(raw.insert(1, ["caf\udce9"]), in_stream=False) == pgoutput.Insert(1, ("caf�",))


@pytest.mark.parametrize(
    "message", [message for message, _ in OUTSIDE_OF_STREAMS] + [message(None) for message, _ in WITH_XID_IN_STREAMS]
)
def test_every_shortened_or_lengthened_message_is_refused(message: bytes) -> None:
    for length in range(len(message)):
        with pytest.raises(ProtocolError):
            parse(message[:length], in_stream=False)
    with pytest.raises(ProtocolError, match="1 bytes are left over"):
        parse(message + b"\0", in_stream=False)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"", "message '' of 0 bytes, at byte 0: ends inside the message type"),
        (b"?", "'\\?' of 1 bytes, at byte 1: unknown message type"),
        (b"C\x00", "'C' of 2 bytes, at byte 2: ends inside the commit LSN"),
        (raw.origin(1, "abc")[:-1], "the origin's name has no end"),
        (b"I" + struct.pack(">I", 1) + b"K" + raw.row(["1"]), "expected a tuple mark of N, found 'K'"),
        (b"U" + struct.pack(">I", 1) + b"X" + raw.row(["1"]), "expected a tuple mark of K/O/N, found 'X'"),
        (b"U" + struct.pack(">I", 1) + b"K" + raw.row(["1"]) + b"K", "expected a tuple mark of N, found 'K'"),
        (b"D" + struct.pack(">I", 1) + b"N" + raw.row(["1"]), "expected a tuple mark of K/O, found 'N'"),
        (raw.insert(1, ["1"])[:-6] + b"x", "unknown kind of value 'x'"),
        (raw.insert(1, ["four"])[:-2], "a text value should have 4 bytes, 2 are left"),
    ],
)
def test_error_says_what_and_where(message: bytes, problem: str) -> None:
    with pytest.raises(ProtocolError, match=problem):
        parse(message, in_stream=False)
