from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from icestream.config import Loaded, load
from icestream.config.environment import FLAGS, VARIABLES
from icestream.config.keys import known_keys
from icestream.config.reference import render_reference
from icestream.config.section import facts_of, walk
from icestream.config.settings import Settings

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
ENVIRON = dict.fromkeys(("POSTGRES_PASSWORD", "CATALOG_CLIENT_SECRET", "S3_ACCESS_KEY", "S3_SECRET_KEY"), "x")


def test_the_page_in_the_docs_is_the_one_the_command_prints() -> None:
    assert (ROOT / "docs" / "reference" / "settings.md").read_text() == render_reference(), (
        "write it again: icestream config reference > docs/reference/settings.md"
    )


def test_every_key_is_described() -> None:
    assert [path for path, field in walk(Settings) if not field.description] == []


def test_every_key_is_on_the_page() -> None:
    page = render_reference()
    for path, field in walk(Settings):
        name = ".".join(path) if facts_of(field).notice else path[-1]
        assert f"| `{name}` |" in page


@pytest.mark.parametrize("path", [*VARIABLES.values(), *FLAGS.values()], ids=".".join)
def test_variables_and_flags_set_keys_that_exist(path: tuple[str, ...]) -> None:
    assert path[-1] in known_keys(path[:-1])


def example(name: str, folder: Path) -> Loaded:
    token = folder / "token"
    token.write_text("t\n")
    path = folder / name
    path.write_text((EXAMPLES / name).read_text().replace("/run/secrets/catalog_token", str(token)))
    return load(path, ENVIRON)


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_the_examples_are_valid(name: str, tmp_path: Path) -> None:
    assert example(name, tmp_path).settings.tables


def test_a_file_of_the_rust_version_is_taken_as_it_is(tmp_path: Path) -> None:
    loaded = example("rest-catalog.yaml", tmp_path)
    settings, sink = loaded.settings, loaded.settings.sink
    assert [str(field) for field in settings.tables[0].iceberg.partition] == [
        "day(created_at)",
        "bucket[16](customer_id)",
    ]
    assert settings.tables[2].skip_snapshot
    assert (sink.flush_interval, sink.flush_rows, sink.maintenance_grace) == (10, 1000, 1800)
    assert sink.catalog_properties()["header.X-Tenant"] == "shop"
    assert settings.metrics_endpoint() is None
    assert {notice.key for notice in loaded.notices} == {
        "sink.compaction_data_files",
        "sink.compaction_delete_files",
        "sink.target_file_size",
        "sink.maintenance_retention",
        "sink.maintenance_grace",
    }


def test_a_file_of_the_go_version_is_taken_as_it_is(tmp_path: Path) -> None:
    loaded = example("go-dialect.yaml", tmp_path)
    sink = loaded.settings.sink
    assert (sink.materializer_concurrency, sink.materializer_worker_id, sink.flush_bytes) == (16, "worker-1", 67108864)
    assert sink.catalog_properties()["token"] == "t"
    assert loaded.settings.pipeline == "bank_slot"
    without_effect = {
        "source.query.poll_interval",
        "sink.events_partition",
        "sink.meta_enabled",
        "sink.meta_namespace",
        "sink.maintenance_interval",
        "state.path",
    }
    assert without_effect <= {notice.key for notice in loaded.notices}
    assert not [notice.key for notice in loaded.notices if notice.key.startswith("source.logical.snapshot_")]
    logical = loaded.settings.source.logical
    assert (logical.snapshot_concurrency, logical.snapshot_chunk_pages) == (4, 2048)
    assert logical.snapshot_target_file_size == 128 * 1024**2


def test_importing_the_settings_loads_nothing_heavy() -> None:
    heavy = ("psycopg", "pyarrow", "numpy", "pyspark")
    code = f"import sys, icestream.config; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
