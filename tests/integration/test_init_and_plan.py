"""What `icestream init` writes works as it is, and `icestream plan` tells what the first copy will take."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from icestream.config import load
from icestream.config.environment import all_variables
from icestream.runtime import exits
from icestream.runtime.checks import check_all, is_fatal
from icestream.runtime.child import icestream_command
from icestream.runtime.init import draft
from icestream.runtime.plan import BYTES_PER_CORE_S, WalRoom, plan_copy
from icestream.sources.postgres.sizes import TableSize
from support.settings import environment_for, settings_for

PASSWORD = "pl41n-secret"
SCHEMA = (
    "CREATE SCHEMA sales",
    "CREATE TABLE sales.orders (id bigint PRIMARY KEY, created_at timestamptz NOT NULL, updated_at timestamptz)",
    'CREATE TABLE sales."Odd $name" (id int PRIMARY KEY)',
    "CREATE TABLE sales.notes (v text)",
    "CREATE TABLE sales.parts (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
    "CREATE TABLE sales.parts_1 PARTITION OF sales.parts FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
    "CREATE TABLE sales.parts_2 PARTITION OF sales.parts FOR VALUES FROM ('2027-01-01') TO ('2028-01-01')",
    "INSERT INTO sales.orders SELECT g, now() FROM generate_series(1, 20000) g",
    "ANALYZE sales.orders",
)


@pytest.fixture
def reader(database: str) -> Iterator[str]:
    """The conninfo of a role that may log in and nothing else."""
    name = f"reader_{conninfo_to_dict(database)['dbname']}"
    role = sql.Identifier(name)
    with psycopg.connect(database, autocommit=True) as conn:
        for statement in SCHEMA:
            conn.execute(statement.encode())
        conn.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, sql.Literal(PASSWORD)))
        yield make_conninfo(database, user=name, password=PASSWORD)
        conn.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(role))
        conn.execute(sql.SQL("DROP ROLE {}").format(role))


def icestream(*arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name not in all_variables()}
    command = icestream_command(*arguments)
    return subprocess.run(
        command, env=environ | variables, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def test_what_init_writes_prepares_the_source_and_passes_the_check(database: str, reader: str, tmp_path: Path) -> None:
    done = icestream("init", "--slot-name", "init_slot", folder=tmp_path, POSTGRES_URL=reader)
    assert done.returncode == exits.OK, done.stderr
    assert "icestream.yaml with 3 tables, 1 to be put right" in done.stdout
    assert "icestream check --config icestream.yaml" in done.stdout
    written, statements = (tmp_path / "icestream.yaml").read_text(), (tmp_path / "icestream.sql").read_text()
    assert PASSWORD not in written + statements
    assert "# - name: sales.notes" in written and "ADD PRIMARY KEY" in written
    assert "#   iceberg: {write_mode: append}" in written
    settings = load(tmp_path / "icestream.yaml", {"POSTGRES_PASSWORD": PASSWORD}).settings
    assert [table.name for table in settings.tables] == ["sales.Odd $name", "sales.orders", "sales.parts"]
    assert any(is_fatal(finding) for finding in check_all(settings))
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute(statements.encode())
    assert [str(finding) for finding in check_all(settings) if is_fatal(finding)] == []


def test_init_never_overwrites_unasked(reader: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("mine")
    done = icestream("init", "mine.yaml", folder=tmp_path, POSTGRES_URL=reader)
    assert (done.returncode, file.read_text()) == (exits.USAGE, "mine")
    assert "--force" in done.stderr
    assert icestream("init", "mine.yaml", "--force", folder=tmp_path, POSTGRES_URL=reader).returncode == exits.OK
    assert "sales.orders" in file.read_text()


def test_large_tables_get_a_partition_by_the_time_that_stays(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icestream.runtime.draft_settings._LARGE", 1)
    found = draft(settings_for(reader, tmp_path, TABLES="sales.orders"))
    assert '# iceberg: {partition: ["month(created_at)"]}' in found.settings


def test_notes_for_managed_services_are_in_the_statements(reader: str, tmp_path: Path) -> None:
    found = draft(settings_for(reader, tmp_path, TABLES="sales.*"))
    for words in ("rds.logical_replication", "cloudsql.logical_decoding", "Azure", "Supabase"):
        assert words in found.sql


def test_the_plan_tells_rows_files_and_time(database: str, reader: str, tmp_path: Path) -> None:
    environ = environment_for(database, tmp_path, TABLES="sales.*", SLOT_NAME="plan_slot")
    settings = load(None, environ, {"spark.master": "local[2]", "source.logical.snapshot_chunk_pages": "40"}).settings
    found = plan_copy(settings)
    tables = {table.name: table for table in found.tables}
    orders, parts = tables["sales.orders"], tables["sales.parts"]
    assert orders.rows == 20000 and not orders.rows_are_guessed
    assert orders.files > 1 and orders.seconds == orders.bytes / (2 * BYTES_PER_CORE_S)
    assert (parts.rows, parts.files) == (0, 2)
    assert found.seconds == sum(table.seconds for table in found.tables)
    assert found.wal.limit_bytes is None and found.wal.written_per_s is not None


def test_the_plan_is_printed(reader: str, tmp_path: Path) -> None:
    done = icestream("plan", "--tables", "sales.*", "--warehouse", "w", folder=tmp_path, POSTGRES_URL=reader)
    assert done.returncode == exits.OK, done.stderr
    assert "sales.orders" in done.stdout and "20,000" in done.stdout
    assert "measured" in done.stdout and "max_slot_wal_keep_size" in done.stdout


def test_the_room_of_a_slot_is_told_as_the_time_it_lasts() -> None:
    assert WalRoom(1000, None, 10.0).seconds == 100
    assert WalRoom(1000, 200, 10.0).seconds == 20
    assert WalRoom(None, None, 10.0).seconds is None


def test_every_relation_is_read_in_ranges_of_its_own() -> None:
    assert TableSize(1, 0, False, 0, (0, 100, 101)).ranges(100) == 1 + 1 + 2
