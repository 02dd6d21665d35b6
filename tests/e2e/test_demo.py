from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from icestream.embedded.demo_folder import DATABASE, DemoFolder
from icestream.embedded.postgres import EmbeddedPostgres
from icestream.embedded.shop import TABLES
from icestream.errors import SettingsError
from icestream.runtime.child import icestream_command
from support.waiting import wait_for


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not pytest's own temporary folder: when root runs the tests, the server's OS user could not enter it.
    with tempfile.TemporaryDirectory(prefix="icestream-demo-") as name:
        yield Path(name) / "demo"


def test_the_demo_ends_with_equal_tables_and_commands_that_work(folder: Path) -> None:
    command = icestream_command("demo", "--seconds", "5", "--json", "--folder", str(folder))
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert set(result) == {"match", "tables", "changes", "lag_ms", "warehouse"}
    assert result["match"] is True
    assert [table["name"] for table in result["tables"]] == list(TABLES)
    assert all(table["different_rows"] == 0 and table["source_rows"] > 0 for table in result["tables"])
    assert result["changes"] > 0
    assert set(result["lag_ms"]) == {"p50", "p99"}
    assert EmbeddedPostgres(folder / "postgres").pid is None
    query = re.findall(r"^  (\S.* sql .*)$", done.stderr, re.MULTILINE)[1]
    shown = subprocess.run([*shlex.split(query), "--format", "tsv"], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines() == ["orders_at_the_start", "300"]


@pytest.fixture
def long_demo(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = icestream_command("demo", "--seconds", "900", "--json", "--folder", str(folder))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_ctrl_c_ends_a_demo_early_with_equal_tables(folder: Path, long_demo: subprocess.Popen[str]) -> None:
    wait_for(lambda: changes_are_made(folder, long_demo), "the shop to change")
    long_demo.send_signal(signal.SIGINT)
    out, err = long_demo.communicate(timeout=200)
    assert long_demo.returncode == 0, err
    assert json.loads(out.splitlines()[-1])["match"] is True
    assert EmbeddedPostgres(folder / "postgres").pid is None


def changes_are_made(folder: Path, demo: subprocess.Popen[str]) -> bool:
    """There is an order that was not there when the shop was opened."""
    assert demo.poll() is None, demo.communicate()
    if not (folder / "icestream.log").exists():
        return False
    with psycopg.connect(EmbeddedPostgres(folder / "postgres").conninfo(DATABASE)) as conn:
        return conn.execute("SELECT count(*) > 300 FROM shop.orders").fetchall() == [(True,)]


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("dear diary")
    with pytest.raises(SettingsError, match="not made by a demo"), DemoFolder(tmp_path).claimed():
        pass
    assert (tmp_path / "diary.txt").exists()


def test_two_demos_do_not_share_a_folder(folder: Path) -> None:
    first, second = DemoFolder(folder), DemoFolder(folder)
    with first.claimed(), pytest.raises(SettingsError, match="a demo is running"), second.claimed():
        pass


def test_an_earlier_demo_is_replaced(folder: Path) -> None:
    demo = DemoFolder(folder)
    with demo.claimed():
        demo.warehouse.mkdir()
        demo.log.touch()
    with demo.claimed():
        assert not demo.warehouse.exists()
        assert not demo.log.exists()
