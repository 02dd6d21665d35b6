"""What libpq says about a connection that can never be made as it is configured.

It gives no SQLSTATE for that, only text. A server that speaks another language is tried again, and its own words are
in the message.
"""

from __future__ import annotations

import re
from typing import Final

_PHRASES: Final = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied",
    "not permitted to log in",
    "not currently accepting connections",
    "certificate",
    "private key file",
    "private SSL key",
    "SSL was required",
    "SSL is not enabled",
    "does not support SSL",
    "invalid connection option",
    "invalid port number",
    "invalid SSL protocol version range",
    "weak sslmode",
    "could not match",
    "could not parse network address",
    "definition of service",
)
_INVALID_VALUE: Final = re.compile(r'invalid "?\w+"? value')


def is_refusal(text: str) -> bool:
    """Whether a person has to change something; otherwise the same may succeed later."""
    return any(phrase in text for phrase in _PHRASES) or _INVALID_VALUE.search(text) is not None


def reason_in(text: str) -> str:
    """`role "x" does not exist` out of libpq's lines about hosts and ports."""
    line = text.strip().splitlines()[0] if text.strip() else "no reason was given"
    return line.rpartition("failed: ")[2].removeprefix("connection is bad:").strip().removeprefix("FATAL:").strip()
