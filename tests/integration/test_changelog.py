"""`write_mode: append`: a table of all changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from icestream.errors import TableParked
from icestream.lake.session import Lake
from support.pipeline import Pipeline


@pytest.fixture
def pipeline(lake: Lake, database: str, tmp_path: Path, namespace: str) -> Iterator[Pipeline]:
    laid_out = {"partition": ["day(_ts)"], "sort_order": ["_lsn"]}
    tables = [{"name": "public.t*", "iceberg": laid_out}, {"name": "public.*"}]
    settings = {"sink.write_mode": "append", "types.json": "variant", "types.uuid": "uuid"}
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace, tables=tables, **settings)
    yield pipeline
    pipeline.close()


def told(pipeline: Pipeline, table: str, columns: str) -> list[tuple[Any, ...]]:
    """In the order of the changes."""
    return pipeline.query(
        f"SELECT {columns} FROM {pipeline.settings.sink.namespace}.{table} ORDER BY _lsn, _offset, id"
    )


def follow(pipeline: Pipeline, *statements: str) -> None:
    pipeline.execute(*statements)
    pipeline.wait_until_captured()
    pipeline.bring_forward()


def test_every_change_is_a_row_with_what_was_there_before(pipeline: Pipeline) -> None:
    pipeline.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text, big text)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO t VALUES (1, 'a', repeat('x', 3000)), (2, 'b', NULL)",
    )
    with pipeline.capturing():
        pipeline.bring_forward()
        follow(
            pipeline,
            "BEGIN; INSERT INTO t VALUES (3, 'c', NULL); UPDATE t SET v = 'A' WHERE id = 1; COMMIT",
            "UPDATE t SET id = 20 WHERE id = 2",
            "DELETE FROM t WHERE id = 3",
        )
        pipeline.assert_equal()
        follow(pipeline, "TRUNCATE t", "INSERT INTO t VALUES (1, 'again', NULL)")
    pipeline.assert_equal()
    assert told(pipeline, "t", "_op, id, v, left(big, 1), _before.id, _before.v, _unchanged_cols") == [
        ("R", 1, "a", "x", None, None, None),
        ("R", 2, "b", None, None, None, None),
        ("I", 3, "c", None, None, None, None),
        ("U", 1, "A", None, None, None, ["big"]),
        ("U", 20, "b", None, 2, None, None),
        ("D", 3, None, None, 3, None, None),
        ("T", None, None, None, None, None, None),
        ("I", 1, "again", None, None, None, None),
    ]
    assert [row[0] for row in told(pipeline, "t", "_offset")] == [-1, -1, 0, 1, 2, 3, 4, 5]
    xids = [row[0] for row in told(pipeline, "t", "_xid")]
    assert xids[:2] == [None, None] and xids[2] == xids[3] and len(set(xids[3:])) == 5
    assert all(at is not None for (at,) in told(pipeline, "t", "_ts"))
    assert {tuple(key) for (key,) in told(pipeline, "t", "_key_cols")} == {("id",)}


def test_tables_without_a_key_are_replayed_by_whole_rows(pipeline: Pipeline) -> None:
    pipeline.execute(
        "CREATE TABLE whole (id int, v text, n numeric)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
        "INSERT INTO whole VALUES (1, 'twice', 1), (1, 'twice', 1), (2, NULL, 'NaN')",
        "CREATE TABLE nameless (id int, v text)",
        "INSERT INTO nameless VALUES (1, 'a'), (1, 'a')",
        "CREATE TABLE silent (id int PRIMARY KEY, v text)",
        "ALTER TABLE silent REPLICA IDENTITY NOTHING",
        "INSERT INTO silent VALUES (1, 'a')",
    )
    with pipeline.capturing():
        pipeline.bring_forward()
        follow(
            pipeline,
            "DELETE FROM whole WHERE ctid = (SELECT min(ctid) FROM whole)",
            "UPDATE whole SET v = 'now' WHERE id = 2",
            "INSERT INTO whole SELECT * FROM whole",
            "INSERT INTO nameless VALUES (1, 'a'), (NULL, NULL)",
            "INSERT INTO silent VALUES (2, 'b')",
        )
        for table in ("nameless", "silent"):
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
                pipeline.execute(f"UPDATE {table} SET v = 'x'")
    pipeline.assert_equal()
    assert told(pipeline, "whole", "_before.v, v")[4:5] == [(None, "now")]


def test_documents_and_uuids_are_in_a_changelog_too(pipeline: Pipeline) -> None:
    pipeline.execute(
        "CREATE TABLE d (id uuid PRIMARY KEY, doc jsonb)",
        "ALTER TABLE d REPLICA IDENTITY FULL",
        "INSERT INTO d SELECT gen_random_uuid(), jsonb_build_object('g', g) FROM generate_series(1, 3) g",
    )
    with pipeline.capturing():
        pipeline.bring_forward()
        follow(pipeline, "UPDATE d SET doc = doc || '{\"more\": [1, null]}' WHERE doc @> '{\"g\": 1}'")
        follow(pipeline, "DELETE FROM d WHERE doc @> '{\"g\": 2}'")
    pipeline.assert_equal()
    assert told(pipeline, "d", "to_json(_before.doc)")[3:] == [('{"g":1}',), ('{"g":2}',)]


def test_another_copy_follows_on_the_history(pipeline: Pipeline, namespace: str) -> None:
    pipeline.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, '1'), (2, '2')")
    with pipeline.capturing():
        pipeline.bring_forward()
        follow(pipeline, "DELETE FROM t WHERE id = 2")
        pipeline.tables.request_copy(f"{namespace}.t", reason="asked for")
        pipeline.bring_forward()
        follow(pipeline, "INSERT INTO t VALUES (3, '3')")
        pipeline.assert_equal()
        follow(pipeline, "ALTER TABLE t ALTER v TYPE int USING v::int", "UPDATE t SET v = 4 WHERE id = 3")
    pipeline.assert_equal()
    first = [("R", 1, "1"), ("R", 2, "2"), ("D", 2, None), ("T", None, None), ("R", 1, "1"), ("I", 3, "3")]
    found = told(pipeline, "t", "_op, id, v_dropped_1, v")
    assert [row[:3] for row in found[:6]] == first
    assert found[6:] == [("T", None, None, None), ("R", 1, None, 1), ("R", 3, None, 4)]
    assert [row[0] for row in told(pipeline, "t", "_xid")].count(None) == 7


def test_a_changelog_does_not_become_a_mirror_unasked(pipeline: Pipeline, namespace: str) -> None:
    pipeline.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with pipeline.capturing():
        pipeline.bring_forward()
    pipeline.configure([{"name": "public.t", "iceberg": {"write_mode": "merge"}}])
    with pipeline.capturing():
        with pytest.raises(TableParked, match=r"changelog.*write_mode.* is now merge") as caught:
            follow(pipeline, "INSERT INTO t VALUES (2)")
        assert f"icestream resync {namespace}.t" in (caught.value.hint or "")
        pipeline.configure([{"name": "public.t"}])
    with pipeline.capturing():
        follow(pipeline, "INSERT INTO t VALUES (3)")
    pipeline.assert_equal()
