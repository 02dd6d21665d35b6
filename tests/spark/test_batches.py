"""What particular batches do to a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.lake.session import Lake
from icestream.materialize import batch
from icestream.model.letters import LONGEST_VALUE
from icestream.model.table import Column, Relation, WriteMode
from icestream.model.type_rules import TypeRules
from support import applying
from support.applying import AppliedTable
from support.staging import Change

_INT4, _TEXT, _DATE, _NUMERIC, _UUID, _TIMESTAMPTZ = 23, 25, 1082, 1700, 2950, 1184
RELATION = Relation(1, "public", "t", "d", (Column("id", _INT4, -1, True), Column("v", _TEXT), Column("Day.of", _DATE)))


@pytest.fixture(autouse=True, params=["folded whole", "decided first", "deleted by key"])
def road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All roads, of small and of large batches and of another write mode, have to lead to the same table."""
    if request.param == "decided first":
        monkeypatch.setattr(batch, "_SMALL_BATCH", 0)
    if request.param == "deleted by key":
        monkeypatch.setitem(applying.DEFAULTS, "write_mode", WriteMode.EQUALITY)


@pytest.fixture
def table(lake: Lake, tmp_path: Path, namespace: str) -> AppliedTable:
    return AppliedTable(lake, tmp_path, namespace, RELATION)


def insert(key: int, value: str | None, day: str | None = None, lsn: int = 1) -> Change:
    return Change("I", new={"id": str(key), "v": value, "Day.of": day}, lsn=lsn)


def values(table: AppliedTable) -> dict[object, object]:
    return {row[0]: row[1] for row in table.rows()}


def test_a_batch_of_inserts_is_one_append(table: AppliedTable) -> None:
    stats = table.apply([insert(1, "a"), insert(2, None)])
    assert (stats.new, stats.known) == (2, 0)
    assert values(table) == {1: "a", 2: None}


def test_a_row_that_comes_and_goes_leaves_nothing_but_moves_the_cursor(table: AppliedTable) -> None:
    table.apply([insert(1, "a"), Change("D", old={"id": "1"})])
    assert values(table) == {}
    assert table.cursor.offset == 2


def test_a_row_deleted_and_inserted_again_is_updated(table: AppliedTable) -> None:
    table.apply([insert(1, "a", lsn=1)])
    table.apply([Change("D", old={"id": "1"}, lsn=2), insert(1, "b", lsn=2)])
    assert values(table) == {1: "b"}


def test_a_truncate_empties_the_table_and_keeps_what_came_after_it(table: AppliedTable) -> None:
    table.apply([insert(1, "a", lsn=1), insert(2, "b", lsn=1)])
    changes = [insert(3, "before", lsn=2), Change("T", lsn=2), insert(1, "after", lsn=2), insert(4, "after", lsn=3)]
    table.apply([*changes, Change("D", old={"id": "4"}, lsn=4)])
    assert values(table) == {1: "after"}


def test_a_truncate_that_the_copy_already_contains_does_nothing(table: AppliedTable) -> None:
    table.apply([insert(1, "a", lsn=5)])
    table.apply([Change("T", lsn=5), insert(9, "old", lsn=5), insert(2, "b", lsn=6)])
    assert values(table) == {1: "a", 2: "b"}


def test_changes_at_or_before_the_cursors_position_are_skipped(table: AppliedTable) -> None:
    table.apply([insert(1, "a", lsn=10)])
    table.apply([insert(1, "again", lsn=10), insert(2, "b", lsn=11)])
    assert values(table) == {1: "a", 2: "b"}


def test_a_value_that_does_not_fit_becomes_null_and_a_letter(table: AppliedTable) -> None:
    table.apply([insert(1, "a", "infinity", lsn=7), insert(2, "b", "2026-01-01", lsn=8)])
    days = {row[0]: row[2] for row in table.rows()}
    assert days[1] is None and str(days[2]) == "2026-01-01"
    (letter,) = table.letters
    assert letter["reason"] == "the Iceberg column can't hold this value"
    assert (letter["offset"], letter["lsn"], letter["key"]) == (0, 7, '{"id":"1"}')
    assert (letter["column"], letter["text"]) == ("Day.of", "infinity")


def test_letters_come_to_the_driver_in_pieces(table: AppliedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_PIECE", 50)
    table.apply([insert(key, "a", "infinity", lsn=7) for key in range(20)])
    assert sorted(int(str(letter["offset"])) for letter in table.letters) == list(range(20))


def test_only_the_beginning_of_a_huge_value_is_brought(table: AppliedTable) -> None:
    table.apply([insert(1, "a", "9" * (LONGEST_VALUE + 100), lsn=7)])
    assert [len(str(letter["text"])) for letter in table.letters] == [LONGEST_VALUE + 1]


def test_a_row_whose_key_does_not_fit_is_a_letter_and_not_a_row(lake: Lake, tmp_path: Path, namespace: str) -> None:
    relation = Relation(1, "public", "t", "d", (Column("n", _NUMERIC, -1, True), Column("v", _TEXT)))
    table = AppliedTable(lake, tmp_path, namespace, relation)
    table.apply([Change("I", new={"n": "NaN", "v": "x"}), Change("I", new={"n": "1.5", "v": "y"})])
    table.apply([Change("U", new={"n": "NaN", "v": "z"}, lsn=2), Change("D", old={"n": "1.5"}, lsn=2)])
    assert table.rows() == []
    assert [letter["text"] for letter in table.letters] == ["NaN", "NaN"]


def test_an_unchanged_value_survives_a_move_between_partitions(lake: Lake, tmp_path: Path, namespace: str) -> None:
    table = AppliedTable(lake, tmp_path, namespace, RELATION, partition=("bucket[4](id)",))
    table.apply([insert(key, f"big{key}", lsn=1) for key in range(8)])
    moves = [
        Change("U", new={"id": str(key + 100), "v": None}, old={"id": str(key)}, unchanged=("v",), lsn=2)
        for key in range(8)
    ]
    table.apply(moves)
    assert values(table) == {key + 100: f"big{key}" for key in range(8)}


def test_an_update_of_a_row_that_was_never_copied_is_inserted(lake: Lake, tmp_path: Path, namespace: str) -> None:
    table = AppliedTable(lake, tmp_path, namespace, RELATION, skip_snapshot=True)
    table.apply([Change("U", new={"id": "1", "v": "a", "Day.of": None}), Change("D", old={"id": "2"})])
    table.apply([Change("U", new={"id": "1", "v": "b", "Day.of": None}, lsn=2), insert(3, "c", lsn=2)])
    assert values(table) == {1: "b", 3: "c"}


def test_text_keys_with_quotes_and_backslashes_are_matched(lake: Lake, tmp_path: Path, namespace: str) -> None:
    relation = Relation(1, "public", "t", "d", (Column("odd `key`", _TEXT, -1, True), Column("v", _TEXT)))
    table = AppliedTable(lake, tmp_path, namespace, relation)
    keys = ["it's", "back\\slash", 'quo"te', "", "ünï", "new\nline", "\\'"]
    table.apply([Change("I", new={"odd `key`": key, "v": "old"}) for key in keys])
    table.apply([Change("U", new={"odd `key`": key, "v": "new"}, lsn=2) for key in keys])
    assert {row[0]: row[1] for row in table.rows()} == dict.fromkeys(keys, "new")


def test_keys_of_many_types_are_matched(lake: Lake, tmp_path: Path, namespace: str) -> None:
    keys = {
        "u": (_UUID, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        "n": (_NUMERIC, "12345678901234567890.5"),
        "d": (_DATE, "1969-12-31"),
        "t": (_TIMESTAMPTZ, "2026-01-02 03:04:05.678901+00"),
        "b": (17, "\\x00ff"),
        "f": (16, "t"),
    }
    columns = (Column(name, oid, -1, True) for name, (oid, _) in keys.items())
    relation = Relation(1, "public", "t", "d", (*columns, Column("v", _TEXT)))
    table = AppliedTable(lake, tmp_path, namespace, relation, types=TypeRules(uuid="uuid"))
    values = {name: value for name, (_, value) in keys.items()}
    others = {**values, "f": "f"}
    table.apply([Change("I", new={**values, "v": "old"}), Change("I", new={**others, "v": "other"})])
    table.apply([Change("U", new={**values, "v": "new"}, lsn=2)])
    assert sorted(row[-1] for row in table.rows()) == ["new", "other"]
    table.apply([Change("D", old=values, lsn=3)])
    assert [row[-1] for row in table.rows()] == ["other"]


def test_format_version_two_has_position_deletes(lake: Lake, tmp_path: Path, namespace: str) -> None:
    table = AppliedTable(lake, tmp_path, namespace, RELATION, format_version=2)
    table.apply([insert(1, "a", lsn=1), insert(2, "b", lsn=1)])
    table.apply([Change("U", new={"id": "1", "v": "z", "Day.of": None}, lsn=2), Change("D", old={"id": "2"}, lsn=2)])
    assert values(table) == {1: "z"}


def test_copy_on_write_leaves_no_delete_files(lake: Lake, tmp_path: Path, namespace: str) -> None:
    table = AppliedTable(lake, tmp_path, namespace, RELATION, write_mode="copy-on-write")
    table.apply([insert(1, "a", lsn=1), insert(2, "b", lsn=1), insert(3, "c", lsn=1)])
    table.apply([Change("U", new={"id": "1", "v": "z", "Day.of": None}, lsn=2), Change("D", old={"id": "2"}, lsn=2)])
    assert values(table) == {1: "z", 3: "c"}
    assert lake.spark.table(f"{namespace}.t.delete_files").count() == 0


def test_many_files_are_put_in_log_order(table: AppliedTable) -> None:
    changes = [insert(1, "v0", lsn=1)]
    changes += [Change("U", new={"id": "1", "v": f"v{n}", "Day.of": None}, lsn=1 + n) for n in range(1, 40)]
    table.apply(changes, files=40)
    assert values(table) == {1: "v39"}


def test_keys_that_look_like_spark_variables_are_matched(lake: Lake, tmp_path: Path, namespace: str) -> None:
    relation = Relation(1, "public", "t", "d", (Column("k", _TEXT, -1, True), Column("v", _TEXT)))
    table = AppliedTable(lake, tmp_path, namespace, relation)
    keys = ["${env:HOME}", "${spark.app.name}"]
    table.apply([Change("I", new={"k": key, "v": "old"}) for key in keys])
    table.apply([Change("U", new={"k": key, "v": "new"}, lsn=2) for key in keys])
    assert {row[0]: row[1] for row in table.rows()} == dict.fromkeys(keys, "new")


def moved(old: int | str, new: int | str, lsn: int = 2) -> Change:
    """An update of the key that does not send `v`."""
    return Change("U", new={"id": str(new), "v": None}, old={"id": str(old)}, unchanged=("v",), lsn=lsn)


def test_an_unchanged_value_follows_its_row_through_a_long_chain_of_keys(table: AppliedTable) -> None:
    table.apply([insert(0, "big", lsn=1), insert(500, "other", lsn=1)])
    table.apply([*(moved(key, key + 1) for key in range(30)), moved(500, 0)])
    assert values(table) == {30: "big", 0: "other"}


def test_a_value_sent_on_the_way_is_the_one_that_moves_on(table: AppliedTable) -> None:
    table.apply([insert(0, "old", lsn=1)])
    sent = Change("U", new={"id": "1", "v": "sent", "Day.of": None}, lsn=2)
    table.apply([moved(0, 1), sent, moved(1, 2), moved(2, 3)])
    assert values(table) == {3: "sent"}


def test_rows_of_keys_that_do_not_fit_lend_their_values_to_nobody(lake: Lake, tmp_path: Path, namespace: str) -> None:
    relation = Relation(1, "public", "t", "d", (Column("id", _DATE, -1, True), Column("v", _TEXT)))
    table = AppliedTable(lake, tmp_path, namespace, relation)
    rows = [Change("I", new={"id": key, "v": f"big {key}"}) for key in ("infinity", "-infinity")]
    table.apply([*rows, moved("infinity", "2024-01-01")])
    assert [row[1] for row in table.rows()] == [None]
    assert [letter["column"] for letter in table.letters if "no row" in str(letter["reason"])] == ["v"]


def test_a_moved_row_does_not_get_the_value_of_the_row_that_had_its_key(
    lake: Lake, tmp_path: Path, namespace: str
) -> None:
    table = AppliedTable(lake, tmp_path, namespace, RELATION, skip_snapshot=True)
    table.apply([insert(1, "another row's", lsn=1)])
    table.apply([Change("D", old={"id": "1"}, lsn=2), moved(7, 1)])
    assert values(table) == {1: None}
    assert [(letter["key"], letter["column"]) for letter in table.letters] == [('{"id":1}', "v")]


def test_an_unchanged_value_of_a_row_that_was_never_copied_is_a_letter(
    lake: Lake, tmp_path: Path, namespace: str
) -> None:
    table = AppliedTable(lake, tmp_path, namespace, RELATION, skip_snapshot=True)
    table.apply([insert(2, "there", lsn=1)])
    updates = [Change("U", new={"id": str(key), "v": None}, unchanged=("v",), lsn=2) for key in (1, 2)]
    table.apply(updates)
    assert values(table) == {1: None, 2: "there"}
    assert [(letter["key"], letter["column"]) for letter in table.letters] == [('{"id":1}', "v")]
