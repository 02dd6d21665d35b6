"""The same cases in every write mode: all tables of a mode share one pipeline, a schema of the source for each case.

The cases are those of `cases/`; some of their tables are partitioned, so that rows move between partitions. Afterwards
every table equals its source, a changelog once it is replayed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.lake.session import Lake
from support.pipeline import Pipeline
from support.postgres_tools import psql

CASES = Path(__file__).parent / "cases"
WAIT = "-- WAIT\n"
AT_ONCE = 3  # tables; most of the time of a small cycle is waiting

MODES = {
    "merge by deletion vectors": {"write_mode": "merge", "format_version": 3},
    "merge by position deletes": {"write_mode": "merge", "format_version": 2},
    "copy-on-write": {"write_mode": "copy-on-write"},
    "append": {"write_mode": "append"},
    "equality": {"write_mode": "equality"},
}
SHARED = (
    "columns_that_are_added",
    "columns_that_are_renamed",
    "columns_that_iceberg_has_to_copy_anew",
    "composite_key",
    "identity_by_an_index",
    "keys_that_become_others",
    "keys_that_change",
    "odd_names",
    "rows_that_come_back",
    "swapped_keys",
    "toast_of_two_columns",
    "toast_that_moves",
    "truncates",
)


@pytest.fixture
def pipeline(lake: Lake, database: str, tmp_path: Path, namespace: str, mode: str) -> Iterator[Pipeline]:
    """Every schema of the source is a namespace of its own."""
    tables = [
        {"name": f"{namespace}_*.*"},
        {"name": f"{namespace}_toast_that_moves.papers", "iceberg": {"partition": ["bucket[3](id)"]}},
        {"name": f"{namespace}_keys_that_change.people", "iceberg": {"partition": ["truncate[1](name)"]}},
        {"name": f"{namespace}_truncates.heap", "iceberg": {"partition": ["note"], "sort_order": ["id desc"]}},
    ]
    settings = {f"sink.{name}": value for name, value in MODES[mode].items()}
    pipeline = Pipeline(
        lake, database, tmp_path, namespace=namespace, tables=tables, **{**settings, "sink.namespace": ""}
    )
    yield pipeline
    pipeline.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", MODES)
def test_the_same_cases_give_the_same_rows(pipeline: Pipeline, namespace: str, mode: str) -> None:
    schemas = {case: f"{namespace}_{case}" for case in SHARED}
    for case, schema in schemas.items():
        psql(pipeline.conninfo, f"CREATE SCHEMA {schema}; SET search_path = {schema};\n{_text(case, 'setup')}")
    with pipeline.capturing():
        pipeline.bring_forward(at_once=AT_ONCE)
        for number in range(max(len(_batches(case)) for case in SHARED)):
            for case, schema in schemas.items():
                psql(pipeline.conninfo, f"SET search_path = {schema};\n{''.join(_batches(case)[number : number + 1])}")
            pipeline.wait_until_captured()
            pipeline.bring_forward(at_once=AT_ONCE)
    pipeline.assert_equal()


def _text(case: str, name: str) -> str:
    return (CASES / case / f"{name}.sql").read_text()


def _batches(case: str) -> list[str]:
    return _text(case, "steps").split(WAIT)
