"""Spark's Python workers: without its archives on their path, and with what tasks need imported before the fork."""

from __future__ import annotations

import sys

import pytest

from icestream.lake.python_daemon import leave_archives
from icestream.lake.session import Lake
from icestream.lake.tasks import Tasks


def test_workers_have_no_archive_on_their_path(lake: Lake) -> None:
    path, modules = _in_a_task(lake)
    assert not [entry for entry in path if entry.endswith((".jar", "pyspark.zip", "-src.zip"))]
    assert {"pyarrow.parquet", "adbc_driver_postgresql"} <= modules


def test_without_another_pyspark_the_archives_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    path = ["/opt/spark/python/lib/pyspark.zip", "/opt/spark/jars/spark-core.jar", "/opt/own"]
    leave_archives(path)
    assert len(path) == 3


def test_archives_of_others_stay() -> None:
    path = ["/opt/spark/jars/spark-core.jar", "/opt/own/libraries.zip"]
    leave_archives(path)
    assert path == ["/opt/own/libraries.zip"]


def _in_a_task(lake: Lake) -> tuple[list[str], set[str]]:
    def look(_: int) -> tuple[list[str], set[str]]:
        return sys.path, set(sys.modules)

    tasks = Tasks(lake.spark)
    try:
        ((_, found),) = tasks.finished(look, [0])
    finally:
        tasks.close()
    return found
