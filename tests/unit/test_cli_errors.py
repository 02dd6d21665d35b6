from __future__ import annotations

import json
import logging
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from icestream import __version__
from icestream.cli.flags import FLAGS
from icestream.cli.main import app, main
from icestream.config import environment
from icestream.errors import ClaimRefused, IcestreamError, SettingsError, SourceError
from icestream.runtime import exits
from icestream.runtime.child import icestream_command

SECRET = "s3cr3t-word"
UNREACHABLE = f"postgresql://shopkeeper:{SECRET}@127.0.0.1:1/shop"
ENOUGH = ("--postgres-url", UNREACHABLE, "--tables", "public.orders", "--warehouse", "/tmp/unused")


@dataclass(frozen=True)
class Outcome:
    code: object
    out: str
    err: str


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    """Runs the command in this process, with none of the developer's own variables."""
    for name in environment.all_variables():
        monkeypatch.delenv(name, raising=False)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr("sys.argv", ["icestream", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return Outcome(end.value.code, captured.out, captured.err)

    yield run
    root.handlers, root.level = handlers, level


def test_version(cli: Cli) -> None:
    assert cli("--version") == Outcome(0, f"icestream {__version__}\n", "")


def test_help_is_shown_without_a_command(cli: Cli) -> None:
    outcome = cli()
    assert "demo" in outcome.out + outcome.err


@pytest.mark.parametrize("arguments", [["nonsense"], ["run", "--nonsense"], ["sql"], ["--log-level", "loud", "run"]])
def test_a_wrong_argument_ends_with_2(cli: Cli, arguments: list[str]) -> None:
    assert cli(*arguments).code == exits.USAGE


def test_all_wrong_settings_are_told_at_once_and_once(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "icestream.yaml"
    file.write_text("tables: [{name: orders}]\nsource: {}\nsink: {flush_intervall: 1s, warehouse: w}\n")
    outcome = cli("check", "--config", str(file))
    assert outcome.code == exits.USAGE
    assert outcome.err.startswith("error: ")
    for wrong in ("tables[0].name", "sink.flush_intervall", "did you mean flush_interval?"):
        assert outcome.err.count(wrong) == 1
    assert "hint: " in outcome.err
    assert "Traceback" not in outcome.err


def test_a_missing_file_is_a_settings_error(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("run", "--config", str(tmp_path / "nowhere.yaml"))
    assert outcome.code == exits.USAGE
    assert "nowhere.yaml" in outcome.err


@pytest.mark.parametrize("command", ["check", "connect-pg", "status", "migrate-coord"])
def test_an_unreachable_database_is_told_without_a_traceback(cli: Cli, command: str) -> None:
    outcome = cli(command, *ENOUGH)
    assert outcome.code == exits.FAILED
    said = outcome.out + outcome.err
    assert said.count("cannot be reached (host 127.0.0.1, port 1, database shop, user shopkeeper)") == 1
    assert "hint: check that the server runs" in said
    assert "Traceback" not in outcome.err
    assert SECRET not in outcome.out + outcome.err


@pytest.mark.parametrize(
    ("error", "code"),
    [(ClaimRefused("x"), exits.TRY_LATER), (SourceError("x"), exits.FAILED), (SettingsError("x"), exits.USAGE)],
)
def test_a_supervised_role_says_whether_a_restart_can_help(error: IcestreamError, code: int) -> None:
    assert exits.supervised_exit_code(error) == code


@pytest.mark.parametrize("command", ["run", "stream-only", "materializer-only --worker-id w"])
def test_a_start_waits_for_an_unreachable_database_and_can_be_stopped(command: str) -> None:
    arguments = icestream_command(*command.split(), "--log-format", "json", *ENOUGH)
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = json.loads(process.stderr.readline())
        process.terminate()
        rest = process.stderr.read()
    assert told["message"] == "waiting for postgresql" and "host 127.0.0.1, port 1" in told["reason"]
    assert process.returncode == exits.OK, rest
    assert SECRET not in str(told) + rest


@pytest.mark.parametrize("command", ["run", "stream-only", "materializer-only --worker-id w"])
def test_a_start_that_waits_is_live_and_says_what_for(command: str) -> None:
    options = ("--log-format", "json", "--metrics-addr", "127.0.0.1:0")
    arguments = icestream_command(*command.split(), *options, *ENOUGH)
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = (json.loads(line) for line in process.stderr)
        port = next(line["port"] for line in said if line["message"] == "serving metrics")
        assert next(line for line in said if line["message"] == "waiting for postgresql")
        live, ready = (answer_of(f"http://127.0.0.1:{port}/{page}") for page in ("live", "ready"))
        process.terminate()
        process.stderr.read()
    assert live == (200, {"ok": True, "problems": []})
    assert ready[0] == 503
    (problem,) = ready[1]["problems"]
    assert "waits for PostgreSQL: the s" in problem and "host 127.0.0.1, port 1" in problem
    assert process.returncode == exits.OK


def answer_of(url: str) -> tuple[int, dict[str, list[str]]]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as err:
        return err.code, json.load(err)


def test_a_start_can_be_stopped_while_a_connection_hangs() -> None:
    """The server takes the connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"postgresql://u:{SECRET}@127.0.0.1:{server.getsockname()[1]}/shop?connect_timeout=2"
        command = icestream_command("stream-only", *ENOUGH, "--postgres-url", url)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            server.accept()
            process.terminate()
            _, said = process.communicate(timeout=60)
    assert process.returncode == exits.OK, said


def test_a_worker_needs_a_name(cli: Cli) -> None:
    outcome = cli("materializer-only", *ENOUGH)
    assert outcome.code == exits.USAGE
    assert "--worker-id" in outcome.err


@pytest.mark.parametrize("option", ["--worker-id", "--materializer-worker-id"])
def test_a_worker_takes_its_name_by_either_option(cli: Cli, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[object] = []
    monkeypatch.setattr("icestream.runtime.roles.run_worker_role", lambda *_, worker_id, **__: names.append(worker_id))
    assert cli("materializer-only", option, "w1", *ENOUGH).code == exits.OK
    assert names == ["w1"]


def test_every_flag_of_the_reference_is_taken_by_some_command(cli: Cli) -> None:
    taken = {
        option
        for command in typer.main.get_group(app).commands.values()
        for parameter in command.params
        for option in parameter.opts
    }
    assert set(re.findall(r"`(--[a-z0-9-]+)`", cli("config", "reference").out)) <= taken


def test_debug_shows_the_traceback_of_our_own_errors_too(cli: Cli) -> None:
    outcome = cli("connect-pg", "--log-level", "debug", *ENOUGH)
    assert "Traceback" in outcome.err
    assert SECRET not in outcome.err


@pytest.mark.parametrize(
    "arguments", [["--log-format", "json", "connect-pg", *ENOUGH], ["connect-pg", "--log-format", "json", *ENOUGH]]
)
def test_log_options_are_taken_before_and_after_the_command(cli: Cli, arguments: list[str]) -> None:
    outcome = cli(*arguments)
    (line,) = outcome.err.splitlines()
    assert "cannot be reached" in json.loads(line)["error"]


def test_a_demo_in_a_file_is_refused(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for folder in (file, file / "below"):
        outcome = cli("demo", "--folder", str(folder))
        assert (outcome.code, "unexpected" in outcome.err) == (exits.USAGE, False)
        assert f"the demo can't use the folder {folder}" in outcome.err and "--folder" in outcome.err
    assert file.read_text() == "mine"


@pytest.mark.parametrize("flags", ["notjson", "[]", '{"--nonsense": "x"}', '{"--tables": 1}'])
def test_inherited_flags_that_are_none_are_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch, flags: str) -> None:
    monkeypatch.setenv("ICESTREAM_FLAGS", flags)
    outcome = cli("status", *ENOUGH)
    assert outcome.code == exits.USAGE
    assert "ICESTREAM_FLAGS does not hold flags" in outcome.err and "unset ICESTREAM_FLAGS" in outcome.err


def test_a_warehouse_that_is_not_there_is_told_by_name(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("sql", "SELECT 1", *ENOUGH, "--warehouse", str(tmp_path / "nowhere"))
    assert outcome.code == exits.FAILED
    assert f"the folder {tmp_path / 'nowhere'} of its catalog does not exist" in outcome.err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("variable", ["ICESTREAM_CACHE", "XDG_CACHE_HOME", "HOME"])
def test_a_cache_that_cannot_be_made_is_final_and_says_which_variable_helps(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    file = tmp_path / "file"
    file.touch()
    for name in ("ICESTREAM_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(file))
    outcome = cli("sql", "SELECT 1", *ENOUGH, "--warehouse", str(tmp_path))
    assert outcome.code == exits.FAILED and exits.is_final(exits.FAILED)
    assert f"the cache folder {file}" in outcome.err and "cannot be used: Not a directory" in outcome.err
    assert "ICESTREAM_CACHE" in outcome.err


def _broken() -> str:
    raise RuntimeError("nobody thought of this")


def test_an_unforeseen_error_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icestream.config.reference.render_reference", _broken)
    outcome = cli("config", "reference")
    assert outcome.code == exits.INTERNAL
    assert outcome.err.splitlines() == [
        "unexpected error: RuntimeError: nobody thought of this",
        "  hint: run with --log-level debug for the traceback",
    ]


def test_an_unforeseen_error_shows_its_traceback_on_request(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icestream.config.reference.render_reference", _broken)
    outcome = cli("--log-level", "debug", "config", "reference")
    assert outcome.code == exits.INTERNAL
    assert "Traceback" in outcome.err


def test_flags_are_those_the_settings_know() -> None:
    assert {flag.option for flag in FLAGS} == set(environment.FLAGS)
    assert {flag.variable for flag in FLAGS} <= set(environment.VARIABLES)


def test_reference_is_printed(cli: Cli) -> None:
    outcome = cli("config", "reference")
    assert outcome.code == 0
    assert "flush_interval" in outcome.out


def test_the_shell_completes_commands() -> None:
    asked = {"_ICESTREAM_COMPLETE": "complete_bash", "COMP_WORDS": "icestream st", "COMP_CWORD": "1"}
    script = "from icestream.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert set(done.stdout.split()) == {"status", "stream-only"}, done.stderr
