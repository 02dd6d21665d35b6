"""Sizes and times for a person to read; about is enough."""

from __future__ import annotations


def about_size(size: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1024 or unit == "TB":
            return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:,.1f} {unit}"
        size /= 1024
    raise AssertionError("the last unit takes everything")


def about_time(seconds: float) -> str:
    if seconds < 1:
        return "less than 1 s"
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.0f} s"
