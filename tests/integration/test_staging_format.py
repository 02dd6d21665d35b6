"""`sink.staging_format` through a whole pipeline, and changed on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from icestream.lake.session import Lake
from support.pipeline import Pipeline

SIX = ["_op", "_lsn", "_ts", "_xid", "_unchanged_cols", "_data"]


@pytest.fixture
def pipeline(lake: Lake, database: str, tmp_path: Path, namespace: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace)
    yield pipeline
    pipeline.close()


def staged(pipeline: Pipeline) -> dict[str, list[str]]:
    """The names of the columns by file, in the order in which they were written."""
    files = sorted(Path(pipeline.settings.sink.staging_root).rglob("*.parquet"), key=lambda path: path.name)
    return {str(path): pq.read_schema(path).names for path in files}


def test_rows_are_staged_as_json_and_the_format_may_change_while_files_wait(pipeline: Pipeline) -> None:
    pipeline.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text, big text)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT g, 'copied', repeat('x', 3000) || g FROM generate_series(1, 4) g",
    )
    pipeline.configure(**{"sink.staging_format": "json"})
    with pipeline.capturing():
        pipeline.bring_forward()
        pipeline.execute("UPDATE t SET v = 'a' WHERE id = 1", "UPDATE t SET id = 20 WHERE id = 2")
        pipeline.wait_until_captured()
    pipeline.configure(**{"sink.staging_format": "columns"})
    with pipeline.capturing():
        pipeline.execute("UPDATE t SET v = 'b' WHERE id = 20", "DELETE FROM t WHERE id = 3")
        pipeline.wait_until_captured()
        written = staged(pipeline)
        pipeline.bring_forward()
    assert {tuple(names) for names in written.values()} == {tuple(SIX), (*SIX, "_old")}
    documents = [path for path, names in written.items() if names == SIX]
    assert all(path.endswith(".json.parquet") for path in documents)
    rows = [row for path in documents for row in pq.read_table(path).to_pylist()]
    assert [(row["_op"], json.loads(row["_data"]), row["_unchanged_cols"]) for row in rows] == [
        ("U", {"id": "1", "v": "a"}, "big"),
        ("U", {"id": "20", "v": "copied", "_old": {"id": "2"}}, "big"),
    ]
    pipeline.assert_equal()
