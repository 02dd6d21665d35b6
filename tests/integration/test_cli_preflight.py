"""The command as a process against a real server: what a person sees when something is not right."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from icestream.config.environment import all_variables
from icestream.runtime import exits
from icestream.runtime.child import icestream_command
from support.settings import environment_for

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(database: str, tmp_path: Path) -> dict[str, str]:
    with psycopg.connect(database) as conn:
        conn.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        conn.execute("CREATE TABLE keyless (note text)")
    return environment_for(database, tmp_path / "warehouse", SLOT_NAME="cli_slot", PUBLICATION_NAME="cli_pub")


@pytest.fixture
def cli(environment: dict[str, str]) -> Cli:
    clean = {name: value for name, value in os.environ.items() if name not in all_variables()}

    def run(*arguments: str, stdin: int = subprocess.DEVNULL, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            icestream_command(*arguments),
            env={**clean, **environment, **variables},
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture
def plain_role(database: str, environment: dict[str, str]) -> Iterator[str]:
    """A user who may log in and nothing else."""
    name = "plain_" + environment["POSTGRES_DATABASE"]
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'plain'").format(sql.Identifier(name)))
        yield name
        conn.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def left_behind(database: str) -> list[str]:
    with psycopg.connect(database) as conn:
        found = conn.execute(
            "SELECT slot_name::text FROM pg_replication_slots WHERE database = current_database()"
            " UNION ALL SELECT pubname::text FROM pg_publication"
            " UNION ALL SELECT nspname::text FROM pg_namespace WHERE nspname = '_pg2iceberg'"
        )
        return [name for (name,) in found]


def test_check_of_a_fit_source_changes_nothing(cli: Cli, database: str, tmp_path: Path) -> None:
    done = cli("check")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (exits.OK, "ok: ready to run"), done.stderr
    assert left_behind(database) == []
    assert not (tmp_path / "warehouse").exists()


def test_findings_are_told_as_json_on_request(cli: Cli) -> None:
    done = cli("check", "--json", TABLES="public.nowhere")
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"]) == (exits.FAILED, False)
    (finding,) = told["findings"]
    assert finding["severity"] == "error" and finding["what"] == "table public.nowhere does not exist"
    assert finding["hint"] == "correct `tables`, or create it"
    assert json.loads(cli("check", "--json").stdout) == {"ok": True, "findings": []}


_S3 = {"WAREHOUSE": "s3://bucket/lake", "ICEBERG_CATALOG_URL": "http://127.0.0.1:1"}


@pytest.mark.parametrize("command", ["check", "run", "stream-only", "materializer-only --worker-id w"])
def test_an_object_store_without_libraries_for_spark_is_refused_at_the_start(cli: Cli, command: str) -> None:
    done = cli(*command.split(), **_S3)
    assert done.returncode == exits.FAILED, done.stderr
    assert "spark.packages" in done.stdout + done.stderr and "iceberg-aws-bundle" in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["check", "run", "stream-only"])
def test_everything_that_stands_in_the_way_is_told_at_once(cli: Cli, database: str, command: str) -> None:
    done = cli(command, TABLES="public.keyless,public.nowhere")
    said = done.stdout + done.stderr
    assert done.returncode == exits.FAILED
    assert "public.keyless" in said
    assert "public.nowhere" in said
    assert "Traceback" not in said
    assert left_behind(database) == []


def test_a_wrong_password_ends_at_once(cli: Cli) -> None:
    done = cli("run", POSTGRES_PASSWORD="wrong")
    assert done.returncode == exits.FAILED
    assert "password authentication failed" in done.stderr


def test_missing_rights_are_told_with_the_statement_that_grants_them(cli: Cli, plain_role: str) -> None:
    done = cli("check", POSTGRES_USER=plain_role, POSTGRES_PASSWORD="plain")
    assert done.returncode == exits.FAILED
    assert "REPLICATION" in done.stdout
    assert "GRANT CREATE ON DATABASE" in done.stdout


def test_an_unwritable_warehouse_is_found_before_the_start(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    done = cli("check", WAREHOUSE=str(file / "warehouse"))
    assert done.returncode == exits.FAILED
    assert "is not a folder" in done.stdout


def test_java_that_spark_cannot_use_is_found_before_the_start(cli: Cli, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    done = cli("check", JAVA_HOME=str(tmp_path))
    assert done.returncode == exits.FAILED
    assert "Java 11 was found, Spark needs 17 or 21" in done.stdout


def test_migrate_coord_makes_what_status_reads(cli: Cli) -> None:
    assert cli("status").returncode == exits.FAILED
    assert "is at version" in cli("migrate-coord").stdout
    done = cli("status")
    assert done.returncode == exits.OK, done.stderr
    assert "nothing captured yet" in done.stdout


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Where a person types, and where the command reads it."""
    ends = pty.openpty()
    yield ends
    for end in ends:
        os.close(end)


def test_cleanup_asks_first(cli: Cli, database: str, terminal: tuple[int, int]) -> None:
    cli("migrate-coord")
    typed, read = terminal
    os.write(typed, b"n\n")
    done = cli("cleanup", stdin=read)
    assert done.returncode == exits.FAILED
    assert "replication slot 'cli_slot'" in done.stdout and "Go on?" in done.stdout
    assert left_behind(database) == ["_pg2iceberg"]
    os.write(typed, b"y\n")
    assert cli("cleanup", stdin=read).returncode == exits.OK
    assert left_behind(database) == []


def test_cleanup_that_nobody_can_be_asked_about_names_the_option(cli: Cli, database: str) -> None:
    cli("migrate-coord")
    done = cli("cleanup")
    assert done.returncode == exits.FAILED
    assert "no terminal" in done.stderr and "--yes" in done.stderr and "Go on?" not in done.stdout
    assert left_behind(database) == ["_pg2iceberg"]
    assert cli("cleanup", "--yes").returncode == exits.OK
    assert left_behind(database) == []
