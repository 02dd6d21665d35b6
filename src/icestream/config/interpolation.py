"""`${VAR}` and `${VAR:-default}` in the texts of a settings file. Works on values, after YAML is read: what a variable
holds can't add keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from icestream.config.masking import looks_secret
from icestream.config.problems import Report
from icestream.config.section import Path

_REFERENCE = re.compile(r"\$\$|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_INSIDE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


class Interpolation:
    def __init__(self, environ: Mapping[str, str], report: Report) -> None:
        self._environ = environ
        self._report = report

    def apply(self, value: Any, path: Path = ()) -> Any:
        if isinstance(value, dict):
            return {key: self.apply(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.apply(item, (*path, index)) for index, item in enumerate(value)]
        return self._text(value, path) if isinstance(value, str) else value

    def _text(self, text: str, path: Path) -> str:
        return _REFERENCE.sub(lambda found: self._replacement(found, path), text)

    def _replacement(self, found: re.Match[str], path: Path) -> str:
        if found[0] == "$$":
            return "$"
        inside = _INSIDE.fullmatch(found["inside"])
        if not found["end"] or inside is None or "${" in found["inside"]:
            self._report.add(path, "has a ${…} that is not ${NAME} or ${NAME:-default}; write $$ for a plain $")
            return ""
        name, default = inside["name"], inside["default"]
        if looks_secret(name):
            self._report.hidden.add(path)
        if default is not None:
            return self._environ.get(name) or default
        if name not in self._environ:
            self._report.add(path, f"the variable {name} is not set; set it, or write ${{{name}:-default}}")
            return ""
        return self._environ[name]
