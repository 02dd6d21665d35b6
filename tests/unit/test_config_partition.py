from __future__ import annotations

import pytest

from icestream.config.partition import PartitionField, SortField, Transform, clashes


@pytest.mark.parametrize(
    ("text", "field", "name"),
    [
        ("region", PartitionField(Transform.IDENTITY, "region"), "region"),
        ("identity(region)", PartitionField(Transform.IDENTITY, "region"), "region"),
        ("year(ts)", PartitionField(Transform.YEAR, "ts"), "ts_year"),
        ("MONTH( ts )", PartitionField(Transform.MONTH, "ts"), "ts_month"),
        ("day(created at)", PartitionField(Transform.DAY, "created at"), "created at_day"),
        ("hour(ts)", PartitionField(Transform.HOUR, "ts"), "ts_hour"),
        ("bucket[16](id)", PartitionField(Transform.BUCKET, "id", 16), "id_bucket"),
        ("Truncate[ 4 ](code)", PartitionField(Transform.TRUNCATE, "code", 4), "code_trunc"),
    ],
)
def test_expressions_are_taken_apart(text: str, field: PartitionField, name: str) -> None:
    parsed = PartitionField.parse(text)
    assert parsed == field
    assert parsed.field_name == name
    assert PartitionField.parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a partition expression"),
        ("day(ts", "not a partition expression"),
        ("bucket[16]", "not a partition expression"),
        ("days(ts)", "unknown transform 'days'"),
        ("day()", "names no column"),
        ("day(hour(ts))", "names no column"),
        ("bucket(id)", r"needs a number; write `bucket\[16\]\(id\)`"),
        ("bucket[0](id)", "from 1 to"),
        ("bucket[-1](id)", "from 1 to"),
        ("bucket[x](id)", "from 1 to"),
        ("truncate[](id)", "from 1 to"),
        ("bucket[2147483648](id)", "from 1 to"),
        ("day[3](ts)", "does not take"),
    ],
)
def test_wrong_expressions_say_what_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        PartitionField.parse(text)


def test_what_iceberg_refuses_in_one_spec_is_found() -> None:
    fields = [
        PartitionField.parse(text) for text in ("day(ts)", "hour(ts)", "day(other)", "bucket[4](id)", "bucket[8](id)")
    ]
    assert list(clashes(fields)) == [
        "partitions ts by time twice (day(ts) and hour(ts)); keep the finer one",
        "has two fields named id_bucket (bucket[4](id) and bucket[8](id))",
    ]


@pytest.mark.parametrize(
    ("text", "descending", "nulls_first", "written"),
    [
        ("id", False, True, "id"),
        ("id asc", False, True, "id"),
        ("id DESC", True, False, "id desc"),
        ("id desc nulls first", True, True, "id desc nulls first"),
        ("id  NULLS LAST", False, False, "id nulls last"),
        ("id asc nulls first", False, True, "id"),
    ],
)
def test_sort_expressions_are_taken_apart(text: str, descending: bool, nulls_first: bool, written: str) -> None:
    field = SortField.parse(text)
    assert field == SortField(PartitionField.parse("id"), descending, nulls_first)
    assert str(field) == written
    assert SortField.parse(written) == field


def test_transforms_can_be_sorted_by_and_columns_can_be_called_like_a_direction() -> None:
    assert SortField.parse("bucket[4](id) desc") == SortField(PartitionField.parse("bucket[4](id)"), True, False)
    assert SortField.parse("desc").field.column == "desc"
