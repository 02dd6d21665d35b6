"""The comparison reads the source by another road than the copy, so it notices what the copy got wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.lake.session import Lake
from icestream.materialize import source_rows
from icestream.verify.compare import Comparison
from support.pipeline import Pipeline

VALUES = (
    "CREATE TABLE t (id int PRIMARY KEY, v text, n numeric(20,4), at timestamptz, raw bytea)",
    "INSERT INTO t VALUES (1, '', 1.5, '2026-01-01 10:00+02', '\\x00ff'), (2, NULL, NULL, NULL, NULL)",
    """INSERT INTO t VALUES (3, E'a "quoted", text\nof\r\ntwo\tlines \\ \\N', -2, 'infinity', '')""",
    "INSERT INTO t SELECT g, 'v' || g, g, now(), NULL FROM generate_series(4, 300) g",
)


@pytest.fixture
def pipeline(lake: Lake, database: str, tmp_path: Path, namespace: str) -> Iterator[Pipeline]:
    pages = {"source.logical.snapshot_chunk_pages": "1"}
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace, **pages)
    pipeline.execute(*VALUES)
    yield pipeline
    pipeline.close()


def copied(pipeline: Pipeline) -> Comparison:
    with pipeline.capturing():
        pipeline.bring_forward()
    return pipeline.compare(f"{pipeline.settings.sink.namespace}.t")


def test_equal_tables_are_equal(pipeline: Pipeline) -> None:
    assert copied(pipeline) == Comparison(300, 300, 0)


def test_a_range_that_was_never_read_is_noticed(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = source_rows.plan_ranges
    monkeypatch.setattr(source_rows, "plan_ranges", lambda *args, **options: plan(*args, **options)[1:])
    found = copied(pipeline)
    assert found.source_rows == 300
    assert 0 < found.target_rows < 300
    assert found.different_rows == 300 - found.target_rows


@pytest.mark.parametrize(
    ("change", "different"),
    [
        ("UPDATE {t} SET v = NULL WHERE id = 1", 1),
        ("UPDATE {t} SET n = NULL WHERE id BETWEEN 10 AND 12", 3),
        ("DELETE FROM {t} WHERE id = 7", 1),
        ("INSERT INTO {t} SELECT * FROM {t} WHERE id = 8", 1),
    ],
)
def test_every_difference_is_noticed(pipeline: Pipeline, change: str, different: int) -> None:
    assert copied(pipeline).different_rows == 0
    pipeline.query(change.format(t=f"{pipeline.settings.sink.namespace}.t"))
    assert pipeline.compare(f"{pipeline.settings.sink.namespace}.t").different_rows == different


def test_rows_whose_key_does_not_fit_do_not_count(pipeline: Pipeline) -> None:
    pipeline.execute(
        "CREATE TABLE days (day date PRIMARY KEY, v text)",
        "INSERT INTO days VALUES ('2026-01-01', 'a'), ('infinity', 'b'), ('0044-03-15 BC', 'c')",
    )
    copied(pipeline)
    assert pipeline.compare(f"{pipeline.settings.sink.namespace}.days") == Comparison(1, 1, 0)
