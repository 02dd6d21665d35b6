from __future__ import annotations

import json
from pathlib import Path

import pytest

from icestream.cli import rows
from icestream.embedded.row_counts import row_counts
from icestream.errors import LakeError
from icestream.lake.query import run_query
from icestream.lake.session import Lake

QUERY = """
SELECT 1 AS id, CAST(NULL AS string) AS nothing, 'tab\there' AS text, CAST(1.50 AS decimal(5,2)) AS amount,
       timestamp'2024-01-02 03:04:05.678' AS at, 'twice' AS id
"""


def test_tsv_has_a_header_and_escapes(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    rows.print_tsv(run_query(lake, QUERY))
    header, row = capsys.readouterr().out.splitlines()
    assert header.split("\t") == ["id", "nothing", "text", "amount", "at", "id"]
    assert row.split("\t") == ["1", "\\N", "tab\\there", "1.50", "2024-01-02 03:04:05.678", "twice"]


def test_json_is_one_array(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    rows.print_json(run_query(lake, "SELECT * FROM VALUES (1, NULL), (2, 'b') AS v(id, `odd.name`)"))
    assert json.loads(capsys.readouterr().out) == [{"id": 1, "odd.name": None}, {"id": 2, "odd.name": "b"}]


def test_json_of_no_rows_is_an_empty_array(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    rows.print_json(run_query(lake, "SELECT 1 AS id WHERE false"))
    assert json.loads(capsys.readouterr().out) == []


def test_a_table_is_not_cut_when_it_goes_to_a_file(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300
    rows.print_table(run_query(lake, f"SELECT '{long}' AS wide, NULL AS nothing, '[bold]' AS markup"))
    shown = capsys.readouterr().out
    assert long in shown
    assert "NULL" in shown
    assert "[bold]" in shown


@pytest.mark.parametrize("query", ["SELECT", "SELECT nowhere FROM nothing", "SELECT raise_error('on purpose')"])
def test_a_failing_query_is_a_readable_error(lake: Lake, query: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LakeError, match="the query failed: ") as refused:
        rows.print_tsv(run_query(lake, query))
    assert "\n" not in str(refused.value)
    assert capsys.readouterr().err == ""


def test_rows_are_counted_without_spark(lake: Lake, warehouse: Path, namespace: str) -> None:
    lake.catalog.ensure_namespace(namespace)
    table = f"{namespace}.counted"
    lake.spark.sql(
        f"CREATE TABLE {table} (id int) USING iceberg TBLPROPERTIES "
        "('format-version'='3', 'write.delete.mode'='merge-on-read')"
    )
    assert row_counts(warehouse / "catalog.db", "icestream")[table] == 0
    lake.spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id FROM range(10)")
    assert row_counts(warehouse / "catalog.db", "icestream")[table] == 10
    lake.spark.sql(f"DELETE FROM {table} WHERE id IN (3, 4)")
    lake.spark.sql(f"DELETE FROM {table} WHERE id = 5")
    assert row_counts(warehouse / "catalog.db", "icestream")[table] == 7


def test_without_a_catalog_there_is_nothing_to_count(tmp_path: Path) -> None:
    assert row_counts(tmp_path / "catalog.db", "icestream") == {}
