"""From PostgreSQL to Iceberg, the whole way, in one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.lake.session import Lake
from icestream.model.table import TableState
from support.pipeline import Pipeline


@pytest.fixture
def pipeline(lake: Lake, database: str, tmp_path: Path, namespace: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(lake, database, tmp_path / "staged {here,there} [1]* 100%", namespace=namespace)
    yield pipeline
    pipeline.close()


def test_rows_that_were_there_and_changes_that_came_are_all_in_the_table(pipeline: Pipeline, warehouse: Path) -> None:
    pipeline.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, note text, total numeric(10,2), at timestamptz DEFAULT now())",
        "INSERT INTO orders SELECT g, 'n' || g, g / 7.0 FROM generate_series(1, 500) g",
    )
    with pipeline.capturing():
        pipeline.execute("INSERT INTO orders VALUES (501, 'while copying', 1)", "DELETE FROM orders WHERE id = 3")
        pipeline.bring_forward()
        pipeline.execute(
            "UPDATE orders SET total = total + 1 WHERE id < 50", "UPDATE orders SET id = -id WHERE id > 490"
        )
        pipeline.wait_until_captured()
        pipeline.bring_forward()
    pipeline.assert_equal()
    assert pipeline.tables.all()[0].state is TableState.LIVE
    files = pipeline.query(f"SELECT file_path FROM {pipeline.settings.sink.namespace}.orders.files")
    assert files
    assert all(str(path).removeprefix("file:").startswith(f"{warehouse}/") for (path,) in files), files
