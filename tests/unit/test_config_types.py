"""`types`, and what a table says about values that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.config import load
from icestream.errors import SettingsError
from icestream.model.table import TableName
from icestream.model.type_rules import TypeRules, Unfit

_FILE = """
source: {{postgres: {{url: postgresql://u@h/d}}}}
sink: {{warehouse: /tmp/w, format_version: {version}}}
types: {types}
tables:
  - name: public.orders
    iceberg: {iceberg}
"""


def rules(folder: Path, types: str = "{}", iceberg: str = "{}", *, version: int = 3) -> TypeRules:
    path = folder / "settings.yaml"
    path.write_text(_FILE.format(types=types, iceberg=iceberg, version=version))
    target = load(path, {}).settings.target_for(TableName("public", "orders"))
    assert target is not None
    return target.types


def test_without_the_section_everything_is_the_default(tmp_path: Path) -> None:
    assert rules(tmp_path) == TypeRules()


def test_the_target_carries_what_the_section_says(tmp_path: Path) -> None:
    types = "{numeric: string, uuid: uuid, json: variant, arrays: string, unfit: fail}"
    assert rules(tmp_path, types) == TypeRules("string", "uuid", "variant", "string", Unfit.FAIL)


def test_a_table_has_a_policy_of_its_own(tmp_path: Path) -> None:
    assert rules(tmp_path, "{unfit: string}", "{unfit: fail}").unfit is Unfit.FAIL


@pytest.mark.parametrize("written", ["null", '"null"', "NULL"])
def test_null_is_a_policy_of_a_table_and_not_a_missing_value(tmp_path: Path, written: str) -> None:
    assert rules(tmp_path, "{unfit: string}", f"{{unfit: {written}}}").unfit is Unfit.NULL


def test_columns_have_policies_of_their_own(tmp_path: Path) -> None:
    found = rules(tmp_path, "{unfit: fail}", "{unfit: {price: null, day: string}}")
    assert [found.policy(column) for column in ("price", "day", "other")] == [Unfit.NULL, Unfit.STRING, Unfit.FAIL]


@pytest.mark.parametrize(
    ("types", "iceberg", "message"),
    [
        ("{unfit: drop}", "{}", "types.unfit"),
        ("{}", "{unfit: drop}", "must be null, string or fail"),
        ("{}", "{unfit: {price: drop}}", "must be null, string or fail"),
        ("{numeric: 'decimal(10,2)'}", "{}", "types.numeric"),
        ("{intervals: text}", "{}", "types.intervals"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, types: str, iceberg: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        rules(tmp_path, types, iceberg)


def test_variant_is_refused_for_tables_of_format_version_2(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="needs format_version 3"):
        rules(tmp_path, "{json: variant}", version=2)
