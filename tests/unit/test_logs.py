from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from icestream.errors import SourceUnavailable
from icestream.observe import logs
from icestream.observe.logs import LogFormat, LogLevel, fields

log = logging.getLogger("icestream.test")


@pytest.fixture(autouse=True)
def restored_root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers, root.level = handlers, level


def configured(log_format: LogFormat, level: LogLevel = LogLevel.INFO, role: str | None = None) -> io.StringIO:
    stream = io.StringIO()
    logs.configure(level, log_format, role=role, stream=stream)
    return stream


def test_text_puts_the_facts_behind_the_message() -> None:
    stream = configured(LogFormat.TEXT, role="capture")
    log.info("claimed", extra=fields(table="shop.orders", rows=3, took_s=0.25))
    time, level, *rest = stream.getvalue().split()
    assert time.count(":") == 2
    assert level == "info"
    assert rest == ["capture", "claimed", "table=shop.orders", "rows=3", "took_s=0.25"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [("two words", '"two words"'), ("", '""'), ("line\nbreak", '"line\\nbreak"'), ("a=b", '"a=b"'), (None, "None")],
)
def test_text_quotes_what_would_be_misread(value: object, shown: str) -> None:
    stream = configured(LogFormat.TEXT)
    log.info("noted", extra=fields(value=value))
    assert stream.getvalue().endswith(f"value={shown}\n")


def test_json_is_one_object_per_line_with_facts_as_keys() -> None:
    stream = configured(LogFormat.JSON, role="worker")
    log.warning("first", extra=fields(rows=1, name="taken by logging elsewhere"))
    log.info("second\nline")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["level"], first["message"], first["role"]) == ("warning", "first", "worker")
    assert (first["rows"], first["name"]) == (1, "taken by logging elsewhere")
    assert second["message"] == "second\nline"


def test_json_facts_never_hide_the_message() -> None:
    stream = configured(LogFormat.JSON)
    log.info("real", extra=fields(message="fact"))
    entry = json.loads(stream.getvalue())
    assert (entry["message"], entry["message_"]) == ("real", "fact")


def test_plain_extra_is_shown_too() -> None:
    stream = configured(LogFormat.TEXT)
    log.info("started", extra={"port": 5432})
    assert stream.getvalue().endswith("started port=5432\n")


def test_an_error_is_one_line_with_its_hint() -> None:
    stream = configured(LogFormat.TEXT)
    log.warning("lost the source", exc_info=SourceUnavailable("cannot be reached", hint="wait"))
    assert stream.getvalue().endswith('lost the source error="cannot be reached" hint=wait\n')


def test_the_traceback_is_there_on_request() -> None:
    stream = configured(LogFormat.TEXT, LogLevel.DEBUG)
    try:
        raise ValueError("odd")
    except ValueError as err:
        log.warning("failed", exc_info=err)
    assert "Traceback" in stream.getvalue()


def test_libraries_are_quiet_even_at_debug() -> None:
    stream = configured(LogFormat.TEXT, LogLevel.DEBUG)
    logging.getLogger("py4j.clientserver").info("Command to send: …")
    log.debug("ours")
    assert "Command" not in stream.getvalue()
    assert "ours" in stream.getvalue()


def test_configuring_again_replaces_the_first() -> None:
    first = configured(LogFormat.TEXT)
    second = configured(LogFormat.TEXT)
    log.info("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1
