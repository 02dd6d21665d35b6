"""One Spark for the whole run, with a catalog of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.lake.session import Lake, LakeOptions, open_lake
from icestream.model.ids import new_id

# Read by every Spark that a test starts: none lives long enough for the second compiler to pay off.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")


SECRET = "not-for-the-process-list"


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a name that no pattern, URI or SQL text may trip over."""
    folder = tmp_path_factory.mktemp("lake") / "warehouse {a,b} [1] #2 100%"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def lake(warehouse: Path) -> Iterator[Lake]:
    options = LakeOptions(
        catalog_name="icestream",
        catalog_properties={
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{warehouse}/catalog.db?journal_mode=WAL&busy_timeout=30000",
            "jdbc.schema-version": "V1",
            "warehouse": str(warehouse),
            "rest.token": SECRET,
        },
        master="local[2]",
    )
    lake = open_lake(options)
    yield lake
    lake.close()


@pytest.fixture
def namespace() -> str:
    """A namespace nobody else uses."""
    return "n" + new_id().replace("-", "")
