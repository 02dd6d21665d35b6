"""Exit codes: what they mean to a person, to a script and to the supervisor."""

from __future__ import annotations

from icestream.errors import IcestreamError, Retry, SettingsError

OK = 0
FAILED = 1  # a person has to change something
USAGE = 2  # a setting or an argument is wrong
INTERNAL = 70  # an error nobody foresaw (EX_SOFTWARE)
TRY_LATER = 75  # the same may succeed later (EX_TEMPFAIL); only supervised roles say so


def exit_code(error: IcestreamError) -> int:
    return USAGE if isinstance(error, SettingsError) else FAILED


def supervised_exit_code(error: IcestreamError) -> int:
    """As `exit_code`, but tells the supervisor when a restart can help."""
    return exit_code(error) if error.retry is Retry.NEVER else TRY_LATER


def is_final(code: int) -> bool:
    """Whether a role that ended with `code` would only end so again."""
    return code in (FAILED, USAGE)
