"""Folders and URIs."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def absolute(location: str) -> str:
    """A local folder as an absolute path, symbolic links kept; any other URI as it is. No slash at the end."""
    if location.lower().startswith("file:"):
        location = unquote(urlsplit(location).path)
    if not location or _SCHEME.match(location):
        return location.rstrip("/")
    return os.path.normpath(expanded(location).absolute())


def expanded(path: str) -> Path:
    """With `~` replaced; as it is where there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def is_bare_name(location: str) -> bool:
    """Whether a REST catalog, and nobody else, can say where this is."""
    return bool(location) and "/" not in location and location[0] not in ".~"
