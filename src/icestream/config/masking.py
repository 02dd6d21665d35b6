"""What may be shown of a value."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel, SecretStr

MASK = "***"
_SECRET_DUMP = str(SecretStr("x"))

_SECRET_NAME = re.compile(
    r"passw(or)?[dt]|passphrase|(^|[^a-z])((pg)?pass|pwd?)($|[^a-z])|secret|token|credential(?!_mode)|authorization|api[-_.]?key|access[-_.]?key"
    r"|account[-_.]?key|private[-_.]?key|\bsas\b",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?P<before>://[^/?#@\s:]*:)\S*@")
_PARAMETER = re.compile(
    r"(?P<before>(?:password|passwd|secret|token|access_?key)\w*\s*=\s*)('[^']*'|[^&;\s]+)", re.IGNORECASE
)


def looks_secret(name: str) -> bool:
    """Whether a property or a variable of this name is likely to hold a secret."""
    return _SECRET_NAME.search(name) is not None


def masked(text: str) -> str:
    """The text without passwords in URLs and connection strings."""
    return _PARAMETER.sub(rf"\g<before>{MASK}", _USERINFO.sub(rf"\g<before>{MASK}@", text))


def redacted(model: BaseModel) -> dict[str, Any]:
    shown = _shown("", model.model_dump(mode="json", by_alias=True))
    assert isinstance(shown, dict)
    return shown


def _shown(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shown(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shown(name, item) for item in value]
    if not isinstance(value, str) or not value:
        return value
    return MASK if looks_secret(name) or value == _SECRET_DUMP else masked(value)
