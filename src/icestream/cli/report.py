"""How an error is told to a person: what happened, why, and what to do next."""

from __future__ import annotations

import logging
import sys
import traceback

from icestream.errors import IcestreamError, SettingsError
from icestream.observe.logs import one_line, writes_json

log = logging.getLogger("icestream")

_LONGEST_CAUSE = 300
# The first may quote the connection string it could not read; the second is a Java stack trace.
_NEVER_SHOWN = ("ProgrammingError", "Py4JJavaError")


def report(error: IcestreamError) -> None:
    if writes_json():
        log.error("failed", exc_info=error)
        return
    _say("error: " + _described(error))
    cause = _shown_cause(error)
    if cause:
        _say(f"  because: {cause}")
    if error.hint:
        _say(f"  hint: {error.hint}")
    if log.isEnabledFor(logging.DEBUG):
        traceback.print_exception(error)


def report_unexpected(error: Exception) -> None:
    """An error nobody foresaw: one line, the rest on request."""
    if log.isEnabledFor(logging.DEBUG):
        traceback.print_exception(error)
    if writes_json():
        log.error("unexpected error", exc_info=error)
        return
    _say(f"unexpected error: {one_line(error)}")
    if not log.isEnabledFor(logging.DEBUG):
        _say("  hint: run with --log-level debug for the traceback")


def _described(error: IcestreamError) -> str:
    if not isinstance(error, SettingsError):
        return str(error)
    missing = [problem for problem in error.problems if problem not in str(error)]
    return "\n".join([str(error), *(f"  - {problem}" for problem in missing)])


def _shown_cause(error: IcestreamError) -> str | None:
    """The cause in one line."""
    cause = error.__cause__
    if cause is None or type(cause).__name__ in _NEVER_SHOWN:
        return None
    text = one_line(cause)
    return text if len(text) <= _LONGEST_CAUSE else text[: _LONGEST_CAUSE - 1] + "…"


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
