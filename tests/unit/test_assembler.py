"""Messages to whole transactions: what joins, what is dropped, what goes to disk, what is refused."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from icestream.capture.assembler import Assembler
from icestream.capture.batch import Batch
from icestream.capture.session import Standing
from icestream.errors import ProtocolError, TablesChanged
from icestream.model.position import Lsn
from icestream.model.table import Column, Relation, TableName
from icestream.sources.postgres.columnar import decode_buffer
from icestream.sources.postgres.stream import HEADER, KEY_END
from support import pgoutput_messages as pg

OID, OTHER_OID, FOREIGN_OID = 100, 200, 300
NARROW = Relation(OID, "public", "t", "d", (Column("id", 23, is_key=True),))
WIDE = Relation(OID, "public", "t", "d", (*NARROW.columns, Column("v", 25)))
OTHER = Relation(OTHER_OID, "public", "o", "d", NARROW.columns)
FOREIGN = Relation(FOREIGN_OID, "public", "f", "d", NARROW.columns)


class Feed:
    """Plays the stream: routes first, then `handle`."""

    def __init__(self, folder: Path, *, flushed: int = 0, memory_bytes: int = 2**20) -> None:
        tables = {OID: "public.t", OTHER_OID: "public.o"}
        self.assembler = Assembler(tables, Lsn(flushed), spill_folder=folder, memory_bytes=memory_bytes)

    def __call__(self, *messages: bytes) -> None:
        for body in messages:
            message = memoryview(bytes(HEADER) + body)
            route = self.assembler.routes.get(message[HEADER:KEY_END].tobytes())
            if route is None:
                self.assembler.handle(message)
            else:
                route[0](message[HEADER:])
                route[1](len(message))
            self.assembler.settle()

    def cut(self) -> list[tuple[str, int, list[str]]]:
        """Table, end of commit, and ids or ops, in the order of the log."""
        return rows_of(self.assembler.cut())


def rows_of(batch: Batch) -> list[tuple[str, int, list[str]]]:
    found = []
    for segment in batch.segments():
        rows = segment.rows
        decoded = decode_buffer(rows.relation, rows.data, rows.message_sizes(), in_stream=rows.in_stream)
        values = [_shown(*pair) for pair in zip(decoded.op.to_pylist(), decoded.new.to_pylist(), strict=True)]
        ends = segment.ends().tolist()
        found += [
            (rows.table, end, [v for v, e in zip(values, ends, strict=True) if e == end]) for end in dict.fromkeys(ends)
        ]
    return found


def _shown(op: str, new: dict[str, str] | None) -> str:
    return new["id"] if new else op


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path)


def plain(end: int, *body: bytes, xid: int = 7) -> tuple[bytes, ...]:
    return (pg.begin(end - 1, 0, xid), *body, pg.commit(end - 1, end, 0))


def test_rows_of_one_table_share_a_segment_across_transactions(feed: Feed) -> None:
    feed(*plain(10, pg.relation_message(NARROW), pg.insert(OID, ["1"]), pg.insert(OID, ["2"])))
    feed(*plain(20, pg.insert(OID, ["3"])))
    batch = feed.assembler.cut()
    (segment,) = batch.segments()
    assert segment.ends().tolist() == [10, 10, 20]
    assert batch.position == 20


def test_a_transaction_without_its_commit_stays_behind_the_cut(feed: Feed) -> None:
    feed(*plain(10, pg.relation_message(NARROW), pg.insert(OID, ["1"])))
    feed(pg.begin(19, 0, 8), pg.insert(OID, ["2"]))
    assert feed.cut() == [("public.t", 10, ["1"])]
    feed(pg.insert(OID, ["3"]), pg.commit(19, 20, 0))
    assert feed.cut() == [("public.t", 20, ["2", "3"])]


def test_what_the_log_has_already_is_dropped(tmp_path: Path) -> None:
    feed = Feed(tmp_path, flushed=20)
    feed(*plain(20, pg.relation_message(NARROW), pg.insert(OID, ["1"])), *plain(30, pg.insert(OID, ["2"])))
    assert feed.cut() == [("public.t", 30, ["2"])]


def test_a_table_that_is_not_ours_only_moves_the_position(feed: Feed) -> None:
    feed(*plain(10, pg.relation_message(FOREIGN), pg.insert(FOREIGN_OID, ["1"]), pg.insert(FOREIGN_OID, ["2"])))
    batch = feed.assembler.cut()
    assert not batch
    assert batch.position == 10


def test_a_shape_that_comes_back_does_not_join_its_earlier_rows(feed: Feed) -> None:
    feed(
        pg.begin(9, 0, 7),
        *(pg.relation_message(NARROW), pg.insert(OID, ["1"])),
        *(pg.relation_message(WIDE), pg.insert(OID, ["2", "x"])),
        *(pg.relation_message(NARROW), pg.insert(OID, ["3"])),
        pg.commit(9, 10, 0),
    )
    assert feed.cut() == [("public.t", 10, ["1"]), ("public.t", 10, ["2"]), ("public.t", 10, ["3"])]


def test_a_relation_told_again_in_the_same_words_begins_rows_of_its_own(feed: Feed) -> None:
    feed(*plain(10, pg.relation_message(NARROW), pg.insert(OID, ["1"])))
    feed(*plain(20, pg.relation_message(NARROW), pg.insert(OID, ["2"])))
    assert len(list(feed.assembler.cut().segments())) == 2


def test_a_truncate_lies_between_the_rows_of_each_of_its_tables(feed: Feed) -> None:
    feed(
        *plain(
            10,
            *(pg.relation_message(NARROW), pg.relation_message(OTHER), pg.insert(OID, ["1"])),
            *(pg.truncate([OID, OTHER_OID]), pg.insert(OID, ["2"])),
        )
    )
    assert feed.cut() == [("public.t", 10, ["1", "T", "2"]), ("public.o", 10, ["T"])]


def test_streamed_transactions_interleave_and_lose_only_what_was_aborted(feed: Feed) -> None:
    feed(pg.stream_start(7, True), pg.relation_message(NARROW, 7), pg.insert(OID, ["1"], 7))
    feed(pg.insert(OID, ["2"], 71), pg.stream_stop())
    feed(pg.stream_start(8, True), pg.relation_message(NARROW, 8), pg.insert(OID, ["8"], 8), pg.stream_stop())
    feed(*plain(10, pg.relation_message(NARROW), pg.insert(OID, ["10"])))
    feed(pg.stream_abort(7, 71))
    feed(pg.stream_start(7, False), pg.truncate([OID], xid=72), pg.insert(OID, ["3"], 73), pg.stream_stop())
    feed(pg.stream_abort(7, 72), pg.stream_abort(8, 8), pg.stream_commit(7, 19, 20, 0))
    assert feed.cut() == [("public.t", 10, ["10"]), ("public.t", 20, ["1", "3"])]


def test_what_a_streamed_transaction_was_told_holds_for_others_only_after_its_commit(feed: Feed) -> None:
    feed(pg.stream_start(7, True), pg.relation_message(WIDE, 7), pg.insert(OID, ["1", "x"], 7), pg.stream_stop())
    with pytest.raises(ProtocolError, match="before anything was told"):
        feed(pg.begin(9, 0, 8), pg.insert(OID, ["2"]))


def test_what_was_told_to_all_later_wins_over_a_streamed_transaction(feed: Feed) -> None:
    feed(pg.stream_start(7, True), pg.relation_message(NARROW, 7), pg.insert(OID, ["1"], 7), pg.stream_stop())
    feed(*plain(10, pg.relation_message(WIDE), pg.insert(OID, ["2", "x"])))
    feed(pg.stream_commit(7, 19, 20, 0))
    feed(*plain(30, pg.insert(OID, ["3", "y"])))
    assert feed.cut() == [("public.t", 10, ["2"]), ("public.t", 20, ["1"]), ("public.t", 30, ["3"])]


@pytest.mark.parametrize("in_stream", [False, True])
def test_rows_that_went_to_disk_come_back_in_order(tmp_path: Path, in_stream: bool) -> None:
    feed = Feed(tmp_path, memory_bytes=200)
    xid = 7 if in_stream else None
    rows = [
        pg.relation_message(NARROW, xid),
        pg.relation_message(OTHER, xid),
        *(pg.insert(OID, [str(number)], xid) for number in range(40)),
        pg.insert(OTHER_OID, ["x"], xid),
        pg.relation_message(WIDE, xid),
        *(pg.insert(OID, [str(number), "w"], xid) for number in range(40, 50)),
    ]
    if in_stream:
        feed(pg.stream_start(7, True), *rows, pg.stream_stop(), pg.stream_commit(7, 9, 10, 0))
    else:
        feed(*plain(10, *rows))
    found = feed.cut()
    values = [value for table, _, values in found if table == "public.t" for value in values]
    assert values == [str(number) for number in range(50)]
    assert ("public.o", 10, ["x"]) in found
    assert list(tmp_path.iterdir()) == [], "a spill has no name"


def test_a_savepoint_for_every_row_does_not_pile_up_routes(feed: Feed) -> None:
    feed(pg.stream_start(7, True), pg.relation_message(NARROW, 7))
    feed(*(pg.insert(OID, [str(number)], 1000 + number) for number in range(10_000)))
    assert len(feed.assembler.routes) < 5000
    feed(pg.stream_stop(), *(pg.stream_abort(7, 1000 + number) for number in range(0, 10_000, 2)))
    feed(pg.stream_commit(7, 9, 10, 0))
    ((_, _, values),) = feed.cut()
    assert values == [str(number) for number in range(1, 10_000, 2)]


def test_keepalives_move_the_position_only_between_transactions(feed: Feed) -> None:
    feed.assembler.keepalive(Lsn(5))
    feed(pg.begin(9, 0, 7))
    feed.assembler.keepalive(Lsn(8))
    assert feed.assembler.reached == 5
    feed(pg.commit(9, 10, 0))
    feed.assembler.keepalive(Lsn(3))
    assert feed.assembler.reached == 10
    feed(pg.stream_start(8, True))
    feed.assembler.keepalive(Lsn(12))
    assert feed.assembler.reached == 12


def test_messages_that_say_nothing_about_rows_are_passed_over(feed: Feed) -> None:
    feed(pg.type_message(1, "public", "mood"), pg.logical_message("p", b"c", 1))
    feed(*plain(10, pg.origin(1, "elsewhere"), pg.relation_message(NARROW), pg.insert(OID, ["1"])))
    assert feed.cut() == [("public.t", 10, ["1"])]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([pg.insert(OID, ["1"])], "outside of any transaction"),
        ([pg.begin(9, 0, 7), pg.insert(OID, ["1"])], "before anything was told"),
        ([pg.begin(9, 0, 7), pg.begin(9, 0, 8)], "begins inside"),
        ([pg.commit(9, 10, 0)], "outside of any transaction"),
        ([pg.stream_start(7, False)], "without having begun"),
        ([pg.stream_commit(7, 9, 10, 0)], "without having begun"),
        ([b"?"], "unknown message type"),
        ([b""], "ends inside"),
    ],
)
def test_a_stream_that_breaks_its_promises_is_refused(feed: Feed, messages: list[bytes], words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        feed(*messages)


def standing(**changes: object) -> Standing:
    known = {"tables": {OID: "public.t"}, "names": frozenset({TableName("public", "t")}), **changes}
    return Standing(epoch="e", publication_oid=1, flushed=Lsn(0), relations={}, feedback_s=1.0, **known)  # type: ignore[arg-type]


def test_another_relation_with_the_name_of_a_table_ends_the_stream_once(tmp_path: Path) -> None:
    found = standing()
    other = Relation(OTHER_OID, "public", "t", "d", NARROW.columns)
    for is_new in (True, False):
        assembler = Assembler(
            found.tables, Lsn(0), spill_folder=tmp_path, memory_bytes=2**20, require_ours=found.require_ours
        )
        for body in (pg.begin(9, 0, 7), pg.relation_message(NARROW), pg.relation_message(FOREIGN)):
            assembler.handle(memoryview(bytes(HEADER) + body))
        with pytest.raises(TablesChanged) if is_new else nullcontext():
            assembler.handle(memoryview(bytes(HEADER) + pg.relation_message(other)))


def test_relations_of_the_past_of_a_parked_table_do_not_end_the_stream() -> None:
    found = standing(tables={OTHER_OID: "public.t"}, names=frozenset())
    found.require_ours(NARROW)
