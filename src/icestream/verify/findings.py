"""What a check has to say."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Severity(enum.StrEnum):
    ERROR = "error"  # nothing starts
    WARNING = "warning"  # it works, but someone should know


@dataclass(frozen=True)
class Finding:
    severity: Severity
    what: str
    hint: str | None = None  # what repairs it, as a command where there is one
    why: str | None = None  # it matters, where that does not go without saying

    def __str__(self) -> str:
        return f"{self.what}: {self.why}" if self.why else self.what


def error(what: str, hint: str | None = None, *, why: str | None = None) -> Finding:
    return Finding(Severity.ERROR, what, hint, why)


def warning(what: str, hint: str | None = None, *, why: str | None = None) -> Finding:
    return Finding(Severity.WARNING, what, hint, why)
