"""Partitions, sort order, location, properties and write mode of an Iceberg table, and what a change of them does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icestream.lake.session import Lake
from icestream.lake.table import IcebergTable
from support.pipeline import Pipeline


@pytest.fixture
def pipeline(lake: Lake, database: str, tmp_path: Path, namespace: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace)
    pipeline.execute(
        "CREATE TABLE t (id int PRIMARY KEY, at date, v text, big text)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT g, '2026-01-01'::date + g * 7, 'v' || g, repeat('x', 3000) FROM generate_series(1, 20) g",
    )
    yield pipeline
    pipeline.close()


def loaded(pipeline: Pipeline, namespace: str) -> IcebergTable:
    table = pipeline.lake.catalog.load(namespace, "t")
    assert table is not None
    return table


def follow(pipeline: Pipeline, iceberg: dict[str, Any], *statements: str) -> None:
    """The statements, under other settings of the table."""
    pipeline.configure([{"name": "public.t", "iceberg": iceberg}])
    with pipeline.capturing():
        pipeline.bring_forward()
        pipeline.execute(*statements)
        pipeline.wait_until_captured()
        pipeline.bring_forward()


@pytest.mark.parametrize("mode", ["merge", "equality"])
def test_other_partitions_later_leave_no_ghosts(pipeline: Pipeline, namespace: str, mode: str) -> None:
    moves = "UPDATE t SET at = at + 40, v = v || '!' WHERE id % 3 = {}"
    follow(pipeline, {"write_mode": mode}, moves.format(0))
    follow(pipeline, {"write_mode": mode, "partition": ["month(at)"]}, moves.format(1), "DELETE FROM t WHERE id = 5")
    follow(pipeline, {"write_mode": mode, "partition": ["month(at)", "bucket[2](id)"]}, moves.format(2))
    follow(
        pipeline, {"write_mode": mode, "partition": ["bucket[5](id)"]}, moves.format(0), "DELETE FROM t WHERE id = 7"
    )
    follow(pipeline, {"write_mode": mode}, "UPDATE t SET id = id + 100 WHERE id % 2 = 0")
    pipeline.assert_equal()
    table = loaded(pipeline, namespace)
    assert table.java.spec().isUnpartitioned()
    specs = [[str(field.name()) for field in spec.fields()] for spec in table.java.specs().values()]
    for fields in ([], ["at_month"], ["at_month", "id_bucket"], ["id_bucket_2"]):
        assert fields in specs


def test_a_table_is_made_where_and_as_the_settings_say(pipeline: Pipeline, namespace: str, tmp_path: Path) -> None:
    wish = {
        "location": str(tmp_path / "else where"),
        "sort_order": ["v desc", "bucket[4](id)"],
        "properties": {"write.metadata.metrics.default": "counts", "comment": "made by a test"},
    }
    follow(pipeline, wish, "INSERT INTO t VALUES (50, '2026-05-05', 'v50', NULL)", "DELETE FROM t WHERE id = 1")
    table = loaded(pipeline, namespace)
    assert table.java.location() == wish["location"]
    assert all(str(wish["location"]) in row[0] for row in pipeline.query(f"SELECT file_path FROM {namespace}.t.files"))
    order = [(str(field.transform()), str(field.direction())) for field in table.java.sortOrder().fields()]
    assert order == [("identity", "DESC"), ("bucket[4]", "ASC")]
    assert table.properties()["comment"] == "made by a test"
    pipeline.assert_equal()
    follow(pipeline, {"sort_order": ["id"], "properties": {"comment": "another"}}, "DELETE FROM t WHERE id = 2")
    table = loaded(pipeline, namespace)
    assert [str(field.transform()) for field in table.java.sortOrder().fields()] == ["identity"]
    assert table.properties()["comment"] == "another" and "write.metadata.metrics.default" not in table.properties()
    pipeline.assert_equal()


def test_a_mirror_goes_on_in_another_write_mode(pipeline: Pipeline, namespace: str) -> None:
    round_ = "UPDATE t SET v = v || '.', at = at + 31 WHERE id % 2 = 0"
    partition = {"partition": ["month(at)"]}
    follow(pipeline, {"write_mode": "merge", **partition}, round_)
    follow(pipeline, {"write_mode": "equality", **partition}, round_, "DELETE FROM t WHERE id = 2")
    contents = {row[0] for row in pipeline.query(f"SELECT content FROM {namespace}.t.delete_files")}
    assert contents == {1, 2}, "deletes by position, then by key"
    pipeline.assert_equal()
    follow(pipeline, {"write_mode": "copy-on-write", **partition}, round_, "UPDATE t SET v = 'end'")
    pipeline.assert_equal()
    newest = loaded(pipeline, namespace)
    head = newest.head()
    assert head is not None
    snapshot = newest.snapshot(head)
    assert snapshot is not None and "added-delete-files" not in snapshot.summary


def test_deletes_by_key_and_their_rows_are_one_snapshot(pipeline: Pipeline, namespace: str) -> None:
    follow(pipeline, {"write_mode": "equality"})
    before = loaded(pipeline, namespace).head()
    follow(
        pipeline,
        {"write_mode": "equality"},
        "BEGIN; UPDATE t SET v = 'new' WHERE id < 5; INSERT INTO t VALUES (99, NULL, 'more', NULL); COMMIT",
    )
    table = loaded(pipeline, namespace)
    head = table.head()
    snapshot = table.snapshot(head) if head is not None else None
    assert snapshot is not None and snapshot.parent_id == before
    counts = {name: snapshot.summary.get(name) for name in ("added-equality-deletes", "added-records")}
    assert counts == {"added-equality-deletes": "4", "added-records": "5"}
    pipeline.assert_equal()


def test_deletes_by_a_key_that_is_dropped_count_on(lake: Lake, database: str, tmp_path: Path, namespace: str) -> None:
    settings = {"sink.write_mode": "equality", "schema.drop_column": "drop"}
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace, **settings)
    pipeline.execute(
        "CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL, v text)",
        "INSERT INTO t SELECT g, 'c' || g, 'v' FROM generate_series(1, 5) g",
    )
    with pipeline.capturing():
        pipeline.bring_forward()
        for statements in (
            ("UPDATE t SET v = 'w' WHERE id < 3", "DELETE FROM t WHERE id = 4"),
            (
                "ALTER TABLE t DROP CONSTRAINT t_pkey",
                "ALTER TABLE t ADD PRIMARY KEY (code)",
                "ALTER TABLE t DROP COLUMN id",
                "UPDATE t SET v = 'x' WHERE code = 'c1'",
            ),
            ("DELETE FROM t WHERE code = 'c2'",),
        ):
            pipeline.execute(*statements)
            pipeline.wait_until_captured()
            pipeline.bring_forward()
    pipeline.assert_equal()
    pipeline.close()
