"""A plain reader gets right answers from the embedded catalog, deletion vectors and all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from icestream.lake.session import Lake
from support.pipeline import Pipeline


@pytest.fixture
def pipeline(lake: Lake, database: str, tmp_path: Path, namespace: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace)
    yield pipeline
    pipeline.close()


def test_pyiceberg_opens_the_catalog_and_sees_updates_and_deletes(
    pipeline: Pipeline, warehouse: Path, namespace: str
) -> None:
    pipeline.execute(
        "CREATE TABLE things (id int PRIMARY KEY, name text, price numeric(8,2), tags text[], prices numeric(8,2)[])",
        "INSERT INTO things SELECT g, 'thing ' || g, g, '{a,NULL}', ARRAY[g, g + 0.5] FROM generate_series(1, 20) g",
    )
    with pipeline.capturing():
        pipeline.bring_forward()
        pipeline.execute("UPDATE things SET name = 'changed' WHERE id <= 3", "DELETE FROM things WHERE id > 15")
        pipeline.wait_until_captured()
        pipeline.bring_forward()
    catalog = SqlCatalog("icestream", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))
    table = catalog.load_table(f"{namespace}.things")
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    expected = pipeline.source.execute("SELECT * FROM things ORDER BY id").fetchall()
    assert [tuple(row.values()) for row in rows] == expected
    assert table.schema().identifier_field_names() == {"id"}
    assert table.format_version == 3
