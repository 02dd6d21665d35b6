"""PostgreSQL URLs and libpq's `key=value` texts. What is said about a wrong one never quotes its values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path as FilePath
from typing import Any
from urllib.parse import parse_qsl, urlsplit

_EXPECTED = "must be a PostgreSQL URL such as postgresql://user:password@host:5432/database"
_SCHEMES = ("postgresql", "postgres")
_NAME = re.compile(r"[A-Za-z_]+")
_NUMBER = re.compile(r"\s*[+-]?[0-9]+\s*")

# What libpq takes, and says only when it connects; the rest it takes as it comes.
_TLS_VERSIONS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
_CHOICES = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "sslnegotiation": ("postgres", "direct"),
    "sslcertmode": ("disable", "allow", "require"),
    "ssl_min_protocol_version": _TLS_VERSIONS,
    "ssl_max_protocol_version": _TLS_VERSIONS,
    "channel_binding": ("disable", "prefer", "require"),
    "gssencmode": ("disable", "prefer", "require"),
    "target_session_attrs": ("any", "read-write", "read-only", "primary", "standby", "prefer-standby"),
    "load_balance_hosts": ("disable", "random"),
}
_NUMBERS = (
    *("connect_timeout", "tcp_user_timeout"),
    *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
)
_FILES = ("sslrootcert", "sslcert", "sslkey")


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


def faults_in(parameters: Mapping[str, str]) -> list[str]:
    """Values that libpq would never take; each continues the sentence that starts with the key."""
    found = [_fault(name, value) for name, value in parameters.items() if value]
    return [fault for fault in found if fault]


def missing_files(parameters: Mapping[str, str | None]) -> dict[str, str]:
    """Files that are named, by parameter, and can't be read here. `system` stands for the system's authorities."""
    named = {name: parameters.get(name) or "" for name in _FILES}
    given = {name: file for name, file in named.items() if file and (name, file) != ("sslrootcert", "system")}
    return {name: file for name, file in given.items() if not FilePath(file).is_file()}


def address(parameters: Mapping[str, Any]) -> str:
    """Which server and database, and as whom, for a person to compare; without the password."""
    host = parameters.get("host") or parameters.get("hostaddr") or "of libpq's default"
    shown = {"host": host, "port": parameters.get("port") or 5432}
    shown |= {name: parameters[key] for name, key in (("database", "dbname"), ("user", "user")) if parameters.get(key)}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def _fault(name: str, value: str) -> str | None:
    choices = _CHOICES.get(name, ())
    if choices and value.lower() not in {choice.lower() for choice in choices}:
        return f"has an {name} that is none of {', '.join(choices)}"
    if name in _NUMBERS and not _NUMBER.fullmatch(value):
        return f"has a {name} that is not a whole number"
    if name == "port" and not all(_is_port(part) for part in value.split(",")):
        return "has a port that is not a number from 1 to 65535"
    return None


def _is_port(text: str) -> bool:
    """Of several servers, one may have the default port, which is written as nothing."""
    return not text or (_NUMBER.fullmatch(text) is not None and 1 <= int(text) <= 65535)


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
