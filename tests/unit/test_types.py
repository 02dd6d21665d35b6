"""The one table of types."""

from __future__ import annotations

import pytest

from icestream.errors import TableParked
from icestream.model.columns import lake_columns
from icestream.model.table import Column, Relation
from icestream.model.type_rules import TypeRules, Unfit
from icestream.model.types import target_type

NUMERIC = 1700
DATE = 1082
UUID, JSON, JSONB = 2950, 114, 3802
INT_ARRAY, INT = 1007, 23
OF_USER = 99_999  # the oid of a type that somebody created


def typmod(precision: int, scale: int) -> int:
    return ((precision << 16) | (scale & 0x7FF)) + 4


@pytest.mark.parametrize(
    ("oid", "modifier", "iceberg"),
    [
        (16, -1, "boolean"),
        (21, -1, "int"),
        (23, -1, "int"),
        (20, -1, "long"),
        (26, -1, "long"),  # oid
        (700, -1, "float"),
        (701, -1, "double"),
        (17, -1, "binary"),
        (1082, -1, "date"),
        (1083, -1, "string"),  # time
        (1266, -1, "string"),  # timetz
        (1114, -1, "timestamp"),
        (1184, -1, "timestamptz"),
        (1186, -1, "string"),  # interval
        (25, -1, "string"),
        (18, -1, "string"),  # "char"
        (19, -1, "string"),  # name
        (1043, 24, "string"),
        (1042, 9, "string"),
        (UUID, -1, "string"),
        (JSONB, -1, "string"),
        (790, -1, "string"),  # money
        (999_999, -1, "string"),  # a type of some extension
        (NUMERIC, -1, "decimal(38,18)"),
        (NUMERIC, typmod(10, 2), "decimal(10,2)"),
        (NUMERIC, typmod(38, 38), "decimal(38,38)"),
        (NUMERIC, typmod(39, 2), "string"),
        (NUMERIC, typmod(1000, 0), "string"),
        (NUMERIC, typmod(3, 5), "decimal(5,5)"),
        (NUMERIC, typmod(5, -3), "decimal(8,0)"),
        (NUMERIC, typmod(30, -20), "string"),
    ],
)
def test_every_type_has_a_place(oid: int, modifier: int, iceberg: str) -> None:
    assert target_type(Column("c", oid, modifier), TypeRules()).iceberg == iceberg


@pytest.mark.parametrize(
    ("column", "rules", "iceberg"),
    [
        (Column("c", NUMERIC), TypeRules(numeric="string"), "string"),
        (Column("c", NUMERIC, typmod(10, 2)), TypeRules(numeric="string"), "decimal(10,2)"),
        (Column("c", UUID), TypeRules(uuid="uuid"), "uuid"),
        (Column("c", JSON), TypeRules(json="variant"), "variant"),
        (Column("c", OF_USER, base_oid=JSONB), TypeRules(json="variant"), "variant"),
        (Column("c", OF_USER, base_oid=UUID), TypeRules(uuid="uuid"), "uuid"),
        (Column("c", INT_ARRAY, element_oid=INT), TypeRules(arrays="string"), "string"),
        (Column("c", 2951, element_oid=UUID), TypeRules(uuid="uuid"), "list<uuid>"),
        (Column("c", 3807, element_oid=JSONB), TypeRules(json="variant"), "list<string>"),
    ],
)
def test_a_rule_decides_where_two_types_are_possible(column: Column, rules: TypeRules, iceberg: str) -> None:
    assert target_type(column, rules).iceberg == iceberg


@pytest.mark.parametrize(
    ("column", "iceberg"),
    [
        (Column("c", OF_USER, base_oid=INT), "int"),
        (Column("c", OF_USER, base_oid=NUMERIC, base_typmod=typmod(10, 2)), "decimal(10,2)"),
        (Column("c", OF_USER), "string"),  # an enum, a composite type, a range
        (Column("c", INT_ARRAY, element_oid=INT), "list<int>"),
        (Column("c", 1231, typmod(10, 2), element_oid=NUMERIC), "list<decimal(10,2)>"),
        (Column("c", OF_USER, base_oid=1231, base_typmod=typmod(10, 2), element_oid=NUMERIC), "list<decimal(10,2)>"),
        (Column("c", OF_USER, element_oid=OF_USER + 1), "list<string>"),
    ],
)
def test_domains_are_what_they_are_made_of_and_arrays_are_lists_of_their_elements(column: Column, iceberg: str) -> None:
    assert target_type(column, TypeRules()).iceberg == iceberg


def test_a_key_that_spark_could_not_compare_is_text() -> None:
    rules = TypeRules(json="variant")
    assert target_type(Column("c", JSONB), rules, is_key=True).iceberg == "string"
    assert target_type(Column("c", INT_ARRAY, element_oid=INT), rules, is_key=True).iceberg == "string"


def relation(*columns: Column) -> Relation:
    return Relation(1, "public", "t", "d", columns)


def test_a_column_with_the_string_policy_has_a_companion_where_a_value_may_not_fit() -> None:
    rules = TypeRules(unfit=Unfit.STRING, unfit_columns={"day": Unfit.FAIL})
    columns = lake_columns(
        relation(Column("id", NUMERIC), Column("price", NUMERIC), Column("day", DATE), Column("note", 25)),
        {"id"},
        rules,
    )
    assert [column.name for column in columns] == ["id", "price", "price_text", "day", "note"]
    assert [column.name for column in columns if column.leaves_letters] == ["id", "day"]


def test_a_companion_whose_name_is_taken_parks_the_table() -> None:
    taken = relation(Column("id", INT), Column("price", NUMERIC), Column("price_text", 25))
    with pytest.raises(TableParked, match="'price_text', which is a column of the source"):
        lake_columns(taken, {"id"}, TypeRules(unfit=Unfit.STRING))
