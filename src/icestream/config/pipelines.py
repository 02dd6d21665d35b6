"""Event pipelines: a settings file without top-level `source` and `sink` describes them, one per top-level key.

They are not part of this version; such a file is recognised and refused as a whole, instead of key by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icestream.errors import SettingsError

_PARTS = frozenset(("source", "sink", "processor", "route", "routes", "buffer"))
_MARKS = frozenset(("pipeline_configurations",))


def describes_pipelines(document: Mapping[str, Any]) -> bool:
    if "source" in document or "sink" in document:
        return False
    return bool(_MARKS & document.keys()) or bool(_names(document))


def refuse_pipelines(document: Mapping[str, Any], path: Path) -> None:
    if describes_pipelines(document):
        names = f" ({', '.join(_names(document))})" if _names(document) else ""
        raise SettingsError(
            f"settings file {path} describes event pipelines{names}; event pipelines are not part of this version",
            hint="for replication from PostgreSQL the file needs `source` and `sink` at its top level; "
            "see `icestream config reference`",
        )


def _names(document: Mapping[str, Any]) -> list[str]:
    return [
        name
        for name, value in document.items()
        if isinstance(value, dict) and "source" in value and _PARTS & value.keys()
    ]
