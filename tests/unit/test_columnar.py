from __future__ import annotations

import struct

import numpy as np
import pytest

from icestream.errors import ProtocolError
from icestream.model.table import Column, Profile, Relation
from icestream.sources.postgres import columnar
from icestream.sources.postgres.columnar import decode_buffer, decode_rows
from icestream.sources.postgres.pgoutput import UNCHANGED
from support import pgoutput_messages as raw

OID = 16385
KEYED = Relation(OID, "public", "t", "d", (Column("id", 20, -1, True), Column("body", 25)))
FULL = Relation(OID, "public", "t", "f", (Column("id", 20, -1, True), Column("body", 25, -1, True)))


def test_changes_of_all_kinds_keep_their_order() -> None:
    batch = decode_rows(
        KEYED,
        [
            raw.insert(OID, ["1", "a"]),
            raw.delete(OID, ["1", None]),
            b"T",
            raw.update(OID, ["3", UNCHANGED], ["2", None]),
            raw.update(OID, ["3", ""]),
        ],
    )
    assert batch.op.to_pylist() == ["I", "D", "T", "U", "U"]
    assert batch.new.to_pylist() == [
        {"id": "1", "body": "a"},
        None,
        None,
        {"id": "3", "body": None},
        {"id": "3", "body": ""},
    ]
    assert batch.old is not None
    assert batch.old.to_pylist() == [None, {"id": "1", "body": None}, None, {"id": "2", "body": None}, None]
    assert batch.unchanged is not None
    assert batch.unchanged.to_pylist() == [None, None, None, ["body"], None]
    assert batch.profile == Profile(inserts=1, updates=2, deletes=1, truncates=1, rekeyed=1, unchanged=1)


def test_batch_without_old_rows_and_unchanged_values_says_so() -> None:
    batch = decode_rows(KEYED, [raw.insert(OID, ["1", None]), raw.update(OID, ["1", "b"])])
    assert batch.old is None
    assert batch.unchanged is None


def test_no_messages_give_an_empty_batch() -> None:
    batch = decode_rows(KEYED, [])
    assert len(batch) == len(batch.new) == 0
    assert batch.profile == Profile()


def test_buffer_of_messages_back_to_back() -> None:
    messages = [raw.insert(OID, ["1", "a"], 700), b"T" + bytes(4), raw.update(OID, ["1", None], xid=701)]
    sizes = np.array([len(message) for message in messages], np.int64)
    data = bytearray(b"".join(messages))
    batch = decode_buffer(KEYED, data, sizes, in_stream=True)
    data.clear()  # would fail if the batch still referred to it
    assert batch.op.to_pylist() == ["I", "T", "U"]
    assert batch.new.to_pylist() == [{"id": "1", "body": "a"}, None, {"id": "1", "body": None}]


@pytest.mark.parametrize("difference", [-1, 1])
def test_sizes_that_do_not_fill_the_buffer_are_refused(difference: int) -> None:
    message = raw.insert(OID, ["1", "a"])
    with pytest.raises(ProtocolError):
        decode_buffer(KEYED, message, np.array([len(message) + difference], np.int64))


def test_relation_without_columns() -> None:
    relation = Relation(OID, "public", "t", "f", ())
    batch = decode_rows(relation, [raw.insert(OID, []), raw.delete(OID, [], "O")])
    assert batch.new.to_pylist() == [{}, None]
    assert batch.old is not None
    assert batch.old.to_pylist() == [None, {}]


def test_unchanged_value_is_filled_from_the_old_row() -> None:
    batch = decode_rows(FULL, [raw.update(OID, ["1", UNCHANGED], ["1", "long"], "O")])
    assert batch.new.to_pylist() == [{"id": "1", "body": "long"}]
    assert batch.unchanged is None
    assert batch.profile == Profile(updates=1, rekeyed=1)


def test_unchanged_key_is_filled_from_the_old_key_and_is_no_key_change() -> None:
    batch = decode_rows(KEYED, [raw.update(OID, [UNCHANGED, "b"], ["long key", None])])
    assert batch.new.to_pylist() == [{"id": "long key", "body": "b"}]
    assert batch.profile == Profile(updates=1)


def test_unchanged_value_that_the_old_row_does_not_hold_stays_unchanged() -> None:
    # A root table may have identity FULL while the partition that logged the row has not.
    batch = decode_rows(FULL, [raw.update(OID, ["1", UNCHANGED], ["1", None], "O")])
    assert batch.unchanged is not None
    assert batch.unchanged.to_pylist() == [["body"]]


def test_multi_byte_text_cut_between_two_values_is_repaired_in_both() -> None:
    halves = [raw.insert(OID, ["1", "\udcc3"]), raw.insert(OID, ["2", "\udca9"])]
    assert [row["body"] for row in decode_rows(KEYED, halves).new.to_pylist()] == ["�", "�"]


def test_batch_beyond_the_reach_of_arrow_offsets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columnar, "_LARGEST_BATCH", 20)
    with pytest.raises(ValueError, match="too large"):
        decode_rows(KEYED, [raw.insert(OID, ["1", "0123456789"])])


HEADER = struct.pack(">I", OID)
ROW = raw.row(["1", "a"])


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"", "cannot be read"),
        (b"I", "cannot be read"),
        (b"X" + HEADER + b"N" + ROW, "cannot be read"),
        (b"I" + HEADER + b"K" + ROW, "cannot be read"),
        (b"U" + HEADER + b"X" + ROW, "cannot be read"),
        (b"U" + HEADER + b"K" + ROW + b"K" + ROW, "cannot be read"),
        (b"U" + HEADER + b"K" + ROW, "cannot be read"),
        (b"D" + HEADER + b"N" + ROW, "cannot be read"),
        (b"D" + HEADER + b"K" + ROW + b"\0", "cannot be read"),
        (raw.insert(OID, ["1", "a"]) + b"\0", "cannot be read"),
        (raw.insert(OID, ["1", "a"])[:-1], "cannot be read"),
        (raw.insert(OID, ["1", "a"])[:-6] + b"t\xff\xff\xff\xffa", "cannot be read"),
        (raw.insert(OID, ["1", None])[:-1] + b"x", "cannot be read"),
        (raw.insert(OID, ["1"]), "has 1 values, its relation 2 columns"),
        (raw.update(OID, ["1", "a"], ["1"], "O"), "has 1 values, its relation 2 columns"),
        (raw.insert(OID, ["1", b"\x00"]), "has a binary value"),
        (raw.begin(1, 1, 1), "is of another kind: Begin"),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_malformed_message_is_named(message: bytes, problem: str, place: int) -> None:
    messages = [raw.insert(OID, ["1", "a"]), b"T"]
    messages.insert(place, message)
    with pytest.raises(ProtocolError, match=f"row message {place + 1} of 3 of public.t {problem}"):
        decode_rows(KEYED, messages)


@pytest.mark.parametrize("length", range(9))
def test_message_shorter_than_its_header_is_refused_also_alone(length: int) -> None:
    with pytest.raises(ProtocolError, match=r"row message 1 of 1 of public\.t cannot be read"):
        decode_rows(KEYED, [raw.insert(OID, ["1", "a"])[:length]])
