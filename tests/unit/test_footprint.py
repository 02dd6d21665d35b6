"""What traces in the catalog mean: which make a table suspect, and what its rows are asked."""

from __future__ import annotations

import msgspec
import pytest

from icestream.model.footprint import ColumnTrace, Footprint, Part, Question, Suspicion, suspicions

INT, BIGINT, TEXT = 23, 20, 25
HEAP = Part(oid=100, name="public.t", made="7", file=100, columns={1: ColumnTrace("7", INT, -1)})
TOASTED = msgspec.structs.replace(HEAP, toast=101)
ROOT = Part(oid=100, name="public.t", made="7")
LEAF = Part(oid=200, name="public.p", made="8", file=200, parent=100, linked="8")
MIDDLE = Part(oid=150, name="public.m", made="8", parent=100, linked="8")


def found(before: list[Part], now: list[Part], *, trigger: str | None = None) -> list[Suspicion]:
    return list(suspicions(_footprint(before, trigger), _footprint(now, trigger)))


def _footprint(parts: list[Part], trigger: str | None) -> Footprint:
    return Footprint(tuple(parts), horizon="50", trigger=trigger)


def but(part: Part, **changes: object) -> Part:
    return msgspec.structs.replace(part, **changes)


REWRITTEN = {"file": 300, "columns": {1: ColumnTrace("9", INT, -1)}}
WIDENED = {"file": 300, "columns": {1: ColumnTrace("9", BIGINT, -1)}}


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (HEAP, but(HEAP, **REWRITTEN)),
        (HEAP, but(HEAP, **WIDENED)),
        (TOASTED, but(TOASTED, **REWRITTEN, toast=301)),
        (HEAP, but(HEAP, file=300, columns={**HEAP.columns, 2: ColumnTrace("9", TEXT, -1)})),
    ],
)
def test_another_file_and_a_touched_column_are_a_rewrite(before: Part, now: Part) -> None:
    assert found([before], [now]) == [Suspicion("public.t was rewritten")]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (HEAP, HEAP),
        (HEAP, but(HEAP, file=300)),
        (HEAP, but(HEAP, columns=REWRITTEN["columns"])),
        (HEAP, but(HEAP, file=300, columns={})),
        (TOASTED, but(TOASTED, **REWRITTEN)),
        (HEAP, but(HEAP, name="public.other")),
    ],
)
def test_one_of_them_alone_is_none(before: Part, now: Part) -> None:
    assert found([before], [now]) == []


def test_triggers_that_noted_only_casts_that_keep_values_settle_the_doubt() -> None:
    assert found([HEAP], [but(HEAP, **WIDENED, rewrites=1)], trigger="1 2 3") == []
    assert found([HEAP], [but(HEAP, **WIDENED, rewrites=1)]) != []


@pytest.mark.parametrize("change", [{**WIDENED}, {**WIDENED, "rewrites": 2, "expressions": 1}])
def test_triggers_that_noted_nothing_or_more_settle_nothing(change: dict[str, object]) -> None:
    assert found([HEAP], [but(HEAP, **change)], trigger="1 2 3") == [Suspicion("public.t was rewritten")]


def test_a_cast_that_may_change_values_is_a_rewrite_whatever_the_triggers_say() -> None:
    now = but(HEAP, file=300, columns={1: ColumnTrace("9", TEXT, -1)}, rewrites=1)
    assert found([HEAP], [now], trigger="1 2 3") == [Suspicion("public.t was rewritten")]


def test_a_partition_that_is_gone_or_was_linked_again_is_certain() -> None:
    assert found([ROOT, LEAF], [ROOT]) == [Suspicion("partition public.p is no longer there")]
    again = but(LEAF, linked="9")
    assert found([ROOT, LEAF], [ROOT, again]) == [Suspicion("partition public.p was away for a while")]


def test_a_partition_with_another_file_is_asked_for_older_rows() -> None:
    (suspicion,) = found([ROOT, LEAF], [ROOT, but(LEAF, file=300)])
    assert (suspicion.question, suspicion.oid, suspicion.xid) == (Question.HOLDS_OLDER, 200, "50")


def test_a_partition_that_was_created_as_one_is_asked_for_rows_of_that_transaction() -> None:
    (suspicion,) = found([ROOT], [ROOT, LEAF])
    assert (suspicion.question, suspicion.xid) == (Question.HOLDS_OWN, "8")
    (suspicion,) = found([ROOT], [ROOT, MIDDLE, but(LEAF, parent=150)])
    assert suspicion.question is Question.HOLDS_OWN


def test_a_partition_that_was_attached_is_asked_for_any_rows() -> None:
    (suspicion,) = found([ROOT], [ROOT, but(LEAF, linked="9")])
    assert suspicion.question is Question.HOLDS_ANY
    (suspicion,) = found([ROOT], [ROOT, but(MIDDLE, linked="9"), but(LEAF, parent=150)])
    assert suspicion.question is Question.HOLDS_ANY


def test_a_new_partition_that_was_emptied_once_is_suspect_without_a_question() -> None:
    (suspicion,) = found([ROOT], [ROOT, but(LEAF, file=300)])
    assert suspicion.question is None


def test_enum_values_that_are_added_are_harmless_and_renamed_ones_are_not() -> None:
    before = Footprint((HEAP,), "50", {1: "sad"})
    assert not list(suspicions(before, Footprint((HEAP,), "60", {1: "sad", 2: "glad"})))
    assert list(suspicions(before, Footprint((HEAP,), "60", {1: "low"})))


def test_a_footprint_survives_its_way_through_the_state() -> None:
    footprint = Footprint((HEAP, LEAF), "50", {1: "sad"}, "1 2 3")
    assert Footprint.from_json(footprint.to_json()) == footprint
    assert footprint.is_like(msgspec.structs.replace(footprint, horizon="60"))


@pytest.mark.parametrize(("old", "new"), [(INT, 26), (650, 869), (TEXT, 142), (90_000, TEXT)])
def test_a_type_that_writes_the_same_bytes_otherwise_is_suspect(old: int, new: int) -> None:
    before, now = (but(HEAP, columns={1: ColumnTrace(xid, oid, -1)}) for xid, oid in (("7", old), ("9", new)))
    (suspicion,) = found([before], [now])
    assert suspicion.question is None
    assert "type" in suspicion.reason


@pytest.mark.parametrize(("old", "new"), [(TEXT, 1043), (1043, TEXT), (142, TEXT), (1560, 1562)])
def test_a_type_that_writes_the_same_bytes_alike_is_not(old: int, new: int) -> None:
    before, now = (but(HEAP, columns={1: ColumnTrace(xid, oid, -1)}) for xid, oid in (("7", old), ("9", new)))
    assert not found([before], [now])
