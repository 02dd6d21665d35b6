"""What users of pg2iceberg have suffered, and must not suffer here (`docs/reference/defects.md`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.lake.session import Lake
from icestream.log.retention import LogRetention
from icestream.log.store import open_store
from icestream.state.retention import Retention
from support.pipeline import Pipeline

_LONG = "repeat(md5('{}'), 100)"  # 3,200 bytes: stored out of line


@pytest.fixture
def pipeline(lake: Lake, database: str, tmp_path: Path, namespace: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace)
    yield pipeline
    pipeline.close()


def catch_up(pipeline: Pipeline) -> None:
    pipeline.wait_until_captured()
    pipeline.bring_forward()


def one_table(pipeline: Pipeline) -> str:
    pipeline.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text, big text)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        f"INSERT INTO t SELECT g, 'copied', {_LONG.format('x')} || g FROM generate_series(1, 10) g",
    )
    return f"{pipeline.settings.sink.namespace}.t"


def files_in(*folders: Path) -> dict[Path, tuple[int, int]]:
    """Every file with what changes when it is written again."""
    found = (path for folder in folders for path in folder.rglob("*") if path.suffix == ".parquet")
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def test_no_file_is_ever_written_again(pipeline: Pipeline, warehouse: Path) -> None:
    table, staged = one_table(pipeline), Path(pipeline.settings.sink.staging_root)
    folders = (warehouse / str(pipeline.settings.sink.namespace), staged)
    before: dict[Path, tuple[int, int]] = {}
    for number in range(3):  # each time capture and worker begin anew
        with pipeline.capturing():
            pipeline.bring_forward()
            pipeline.execute(f"UPDATE t SET v = 'round {number}' WHERE id <= 3", "DELETE FROM t WHERE id = 9")
            catch_up(pipeline)
        pipeline.begin_anew()
        now = files_in(*folders)
        assert {path: now.get(path) for path in before} == before
        assert len(now) > len(before)
        before = now
    pipeline.assert_equal()
    assert pipeline.query(f"SELECT count(*) FROM {table}") == [(9,)]


def test_only_staged_files_that_were_passed_are_removed(pipeline: Pipeline, warehouse: Path) -> None:
    one_table(pipeline)
    settings = pipeline.settings
    with pipeline.capturing():
        pipeline.bring_forward()
        pipeline.execute("UPDATE t SET v = 'passed'")
        catch_up(pipeline)
        pipeline.execute("DELETE FROM t WHERE id <= 5")
        pipeline.wait_until_captured()
        kept = files_in(warehouse / str(settings.sink.namespace))
        store = open_store(settings.sink.staging_root)
        retention = LogRetention(Retention(pipeline.db, settings.pipeline), store, keep_s=0, grace_s=0)
        assert retention.sweep() > 0
        assert files_in(warehouse / str(settings.sink.namespace)) == kept
        pipeline.bring_forward()
    pipeline.assert_equal()


def test_keys_whose_texts_sort_otherwise_are_copied_whole(pipeline: Pipeline) -> None:
    """9,999 comes after 10,000 as text, and uuids and words sort as the collation says."""
    pipeline.execute(
        "CREATE TABLE numbers (id bigint PRIMARY KEY, v text)",
        "CREATE TABLE uuids (id uuid PRIMARY KEY, v text)",
        'CREATE TABLE words (id text COLLATE "C" PRIMARY KEY, v text)',
        "INSERT INTO numbers SELECT g, 'v' || g FROM generate_series(-100, 12000) g",
        "INSERT INTO uuids SELECT md5(g::text)::uuid, 'v' || g FROM generate_series(1, 12000) g",
        "INSERT INTO words SELECT chr(65 + g % 60) || g, 'v' || g FROM generate_series(1, 12000) g",
    )
    with pipeline.capturing():
        pipeline.bring_forward()
    pipeline.assert_equal()


def test_deleted_rows_stay_away_after_expiry_and_compaction(pipeline: Pipeline) -> None:
    """And values that an update does not send are found in files that somebody has rewritten."""
    table = one_table(pipeline)
    with pipeline.capturing():
        pipeline.bring_forward()
        pipeline.execute("DELETE FROM t WHERE id <= 3", "UPDATE t SET v = 'before' WHERE id = 4")
        catch_up(pipeline)
        pipeline.query(f"CALL system.expire_snapshots(table => '{table}', older_than => now(), retain_last => 1)")
        pipeline.query(f"CALL system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))")
        pipeline.execute(
            "UPDATE t SET v = 'after' WHERE id = 5",
            "UPDATE t SET id = 60 WHERE id = 6",
            "DELETE FROM t WHERE id = 7",
        )
        catch_up(pipeline)
        pipeline.query(f"CALL system.rewrite_position_delete_files('{table}')")
        pipeline.query(f"CALL system.expire_snapshots(table => '{table}', older_than => now(), retain_last => 1)")
        pipeline.execute("UPDATE t SET v = 'end' WHERE id IN (5, 60)", "INSERT INTO t VALUES (1, 'new', NULL)")
        catch_up(pipeline)
    pipeline.assert_equal()


def test_a_commit_that_takes_rows_away_is_not_called_an_append(pipeline: Pipeline) -> None:
    table = one_table(pipeline)
    with pipeline.capturing():
        pipeline.bring_forward()
        for change in ("INSERT INTO t VALUES (11, 'new', NULL)", "UPDATE t SET v = 'x' WHERE id = 1", "TRUNCATE t"):
            pipeline.execute(change)
            catch_up(pipeline)
    operations = pipeline.query(f"SELECT operation FROM {table}.snapshots ORDER BY committed_at")
    assert [operation for (operation,) in operations][-3:] == ["append", "overwrite", "delete"]


def test_the_remembered_snapshot_can_be_travelled_to(pipeline: Pipeline) -> None:
    table = one_table(pipeline)
    with pipeline.capturing():
        pipeline.bring_forward()
        pipeline.execute("DELETE FROM t WHERE id > 4")
        catch_up(pipeline)
        stored = pipeline.cursors.load(table)
        assert stored is not None and stored.snapshot_id is not None
        pipeline.execute("TRUNCATE t")
        catch_up(pipeline)
    assert pipeline.query(f"SELECT count(*) FROM {table} VERSION AS OF {stored.snapshot_id}") == [(4,)]
    assert pipeline.query(f"SELECT count(*) FROM {table}") == [(0,)]
