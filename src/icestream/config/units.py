"""Durations and sizes as people write them."""

from __future__ import annotations

import re
from decimal import Decimal

DURATION_EXAMPLES = "such as 500ms, 10s, 5m, 1h30m or PT5M"
SIZE_EXAMPLES = "such as 64mb, 64MiB, 512kb or 67108864"

_HUNDRED_YEARS = Decimal(100 * 366 * 86400)  # beyond it a wait overflows the operating system's timers

_SECONDS = {
    **dict.fromkeys(("ns", "nsec"), Decimal("1e-9")),
    **dict.fromkeys(("us", "µs", "μs", "usec"), Decimal("1e-6")),
    **dict.fromkeys(("ms", "msec"), Decimal("1e-3")),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Decimal(1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), Decimal(60)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Decimal(3600)),
    **dict.fromkeys(("d", "day", "days"), Decimal(86400)),
    **dict.fromkeys(("w", "week", "weeks"), Decimal(7 * 86400)),
}
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_PART = re.compile(rf"\s*({_NUMBER})\s*([a-zµμ]+)\s*")
_ISO = re.compile(
    rf"P(?:(?P<w>{_NUMBER})W)?(?:(?P<d>{_NUMBER})D)?"
    rf"(?:T(?=[0-9.])(?:(?P<h>{_NUMBER})H)?(?:(?P<m>{_NUMBER})M)?(?:(?P<s>{_NUMBER})S)?)?",
    re.IGNORECASE,
)

_POWERS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SIZE = re.compile(rf"({_NUMBER})\s*(?:([kmgtp])i?b?|b|)", re.IGNORECASE)
_LARGEST_SIZE = 2**62


def parse_duration(text: str) -> float:
    """Seconds. Raises ValueError with a message for the user."""
    seconds = _iso_seconds(text.strip()) if text.strip()[:1] in ("P", "p") else _unit_seconds(text)
    if seconds is None:
        raise ValueError(f"is not a duration; write a number with a unit, {DURATION_EXAMPLES}")
    if seconds > _HUNDRED_YEARS:
        raise ValueError("is longer than 100 years")
    return float(seconds)


def _unit_seconds(text: str) -> Decimal | None:
    total, end = Decimal(0), 0
    while end < len(text):
        part = _PART.match(text, end)
        if part is None or part[2] not in _SECONDS:
            return None
        total += Decimal(part[1]) * _SECONDS[part[2]]
        end = part.end()
    return total if end else None


def _iso_seconds(text: str) -> Decimal | None:
    found = _ISO.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    parts = ((unit, Decimal(value)) for unit, value in found.groupdict().items() if value)
    return sum((value * _SECONDS[unit] for unit, value in parts), Decimal(0))


def parse_size(text: str) -> int:
    """Bytes. kb, mb, gb count by 1024, as kib, mib, gib do and as PostgreSQL's own settings do."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"is not a size; write a number of bytes or one with a unit, {SIZE_EXAMPLES}")
    size = Decimal(found[1]) * 1024 ** _POWERS[(found[2] or "").lower()]
    if size > _LARGEST_SIZE:
        raise ValueError("is larger than any file can be")
    return int(size)


def format_duration(seconds: float) -> str:
    """The shortest of our own spellings: `1h30m`, `10s`, `100ms`."""
    if seconds == 0:
        return "0s"
    whole, rest = divmod(round(Decimal(repr(float(seconds))), 9), 1)
    text = ""
    for unit, length in (("h", 3600), ("m", 60), ("s", 1)):
        count, whole = divmod(whole, length)
        text += f"{int(count)}{unit}" if count else ""
    return text + (f"{(rest * 1000).normalize():f}ms" if rest else "")


def format_size(size: int) -> str:
    for power, unit in ((4, "tb"), (3, "gb"), (2, "mb"), (1, "kb")):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power}{unit}"
    return str(size)
