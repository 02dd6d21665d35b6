"""PostgreSQL URLs and libpq's `key=value` texts. What is said about a wrong one never quotes its values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any
from urllib.parse import parse_qsl, urlsplit

_EXPECTED = "must be a PostgreSQL URL such as postgresql://user:password@host:5432/database"
_SCHEMES = ("postgresql", "postgres")
_NAME = re.compile(r"[A-Za-z_]+")


def parse_conninfo(text: str) -> dict[str, str] | None:
    """None if libpq does not take it; `what_is_wrong` says why."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        return {name: str(value) for name, value in conninfo_to_dict(text).items()}
    except ProgrammingError:
        return None


def what_is_wrong(text: str) -> str:
    unknown = _unknown_parameters(text)
    return "; ".join(unknown) if unknown else _EXPECTED


def address(parameters: Mapping[str, Any]) -> str:
    """Which server and database, and as whom, for a person to compare; without the password."""
    host = parameters.get("host") or parameters.get("hostaddr") or "of libpq's default"
    shown = {"host": host, "port": parameters.get("port") or 5432}
    shown |= {name: parameters[key] for name, key in (("database", "dbname"), ("user", "user")) if parameters.get(key)}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def _unknown_parameters(url: str) -> list[str]:
    from psycopg.pq import Conninfo

    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    if parts.scheme not in _SCHEMES or "@" in parts.query:  # a ? in the password, and what follows is part of it
        return []
    known = [option.keyword.decode() for option in Conninfo.get_defaults()]
    given = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True) if _NAME.fullmatch(name)]
    unknown = [name for name in given if name not in known]
    return [f"has the parameter {name}, which libpq does not know{_meant(name, known)}" for name in unknown]


def _meant(name: str, known: list[str]) -> str:
    near = get_close_matches(name.lower(), known, 1)
    return f"; did you mean {near[0]}?" if near else ""
