"""A table that is copied again with other columns: readers see the old ones until the new rows are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from icestream.lake.session import Lake
from icestream.materialize import first_copy
from icestream.model.table import TableState
from support.pipeline import Pipeline
from support.waiting import wait_for

ITEMS = (
    "CREATE TABLE items (id int PRIMARY KEY, n text, gone text, tags text)",
    "INSERT INTO items SELECT g, g::text, 'gone', 'x' FROM generate_series(1, 20) g",
)
ALTERED = (
    "ALTER TABLE items ALTER n TYPE int USING n::int * 10, ALTER tags TYPE text[] USING ARRAY[tags],"
    " DROP COLUMN gone, ADD COLUMN made float8 DEFAULT 1 + random() * 0",
    "ALTER TABLE items DROP CONSTRAINT items_pkey, ADD PRIMARY KEY (id, n)",
)


class Death(BaseException):
    """Not an Exception: nobody in the code under test may handle it."""


@pytest.fixture
def pipeline(lake: Lake, database: str, tmp_path: Path, namespace: str) -> Iterator[Pipeline]:
    pages = {"source.logical.snapshot_chunk_pages": "1"}
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace, **pages)
    yield pipeline
    pipeline.close()


@contextmanager
def at_step(step: str, action: Callable[[], None]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_copy, "reached", lambda name: action() if name == step else None)
        yield


def key(pipeline: Pipeline) -> str:
    return f"{pipeline.settings.sink.namespace}.items"


def is_offered(pipeline: Pipeline) -> bool:
    row = pipeline.tables.get(key(pipeline))
    return row is not None and row.state is TableState.COPYING


def create(pipeline: Pipeline, clause: str) -> None:
    """The Iceberg table; one that is partitioned is written by Spark."""
    if clause:
        pipeline.query(f"CREATE NAMESPACE {pipeline.settings.sink.namespace}")
        columns = "id int NOT NULL, n string, gone string, tags string"
        pipeline.query(f"CREATE TABLE {key(pipeline)} ({columns}) {clause}")


@pytest.mark.parametrize("clause", ["", "PARTITIONED BY (bucket(4, id))"], ids=["own files", "by spark"])
def test_new_columns_become_visible_together_with_their_rows(pipeline: Pipeline, clause: str) -> None:
    create(pipeline, clause)
    pipeline.execute(*ITEMS)
    old = [(g, str(g), "gone", "x") for g in range(1, 21)]
    query, seen = f"SELECT id, n, gone, tags FROM {key(pipeline)} ORDER BY id", []
    with pipeline.capturing():
        pipeline.bring_forward()
        pipeline.execute(*ALTERED)
        wait_for(lambda: is_offered(pipeline), what="another copy")
        with pytest.raises(Death), at_step("copy staged", lambda: _die(lambda: seen.append(pipeline.query(query)))):
            pipeline.bring_forward()
        assert seen == [old] and pipeline.query(query) == old, "readers lost what was there"
        pipeline.bring_forward()
        pipeline.execute("INSERT INTO items VALUES (21, 210, '{a,NULL}', 2)")
        pipeline.wait_until_captured()
        pipeline.bring_forward()
    pipeline.assert_equal()
    fields = pipeline.lake.spark.table(key(pipeline)).schema
    assert {field.name: field.dataType.simpleString() for field in fields} == {
        "id": "int",
        "n": "int",
        "tags": "array<string>",
        "made": "double",
    }
    (newest,) = pipeline.query(f"SELECT snapshot_id FROM {key(pipeline)}.refs WHERE name = 'main'")
    as_of = pipeline.lake.spark.sql(f"SELECT * FROM {key(pipeline)} VERSION AS OF {newest[0]}")
    assert as_of.columns == fields.names


def test_files_that_were_written_before_a_crash_are_used_unless_the_table_has_changed(pipeline: Pipeline) -> None:
    pipeline.execute(*ITEMS)
    with pipeline.capturing():
        pipeline.bring_forward()
        pipeline.execute(*ALTERED)
        wait_for(lambda: is_offered(pipeline), what="another copy")
        with pytest.raises(Death), at_step("copy staged", lambda: _die(lambda: None)):
            pipeline.bring_forward()
        pipeline.query(f"ALTER TABLE {key(pipeline)} ADD COLUMN theirs string")
        pipeline.bring_forward()
    pipeline.assert_equal()
    assert "theirs" not in pipeline.lake.spark.table(key(pipeline)).columns


def _die(first: Callable[[], object]) -> None:
    first()
    raise Death
