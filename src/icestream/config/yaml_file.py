"""Reads a YAML file into maps, lists and texts.

Every scalar stays the text it is: the type of a key decides what it means, not YAML's guess. So a password of digits
keeps its zeros, and `no` stays a word. Maps with a repeated key are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml

from icestream.config.section import Path, dotted
from icestream.errors import SettingsError

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_NULL = _TAG + "null"
_TEXT_TAGS = frozenset(_TAG + name for name in ("str", "int", "float", "bool", "timestamp"))
_DEEPEST = 50  # levels; no key needs more than ten


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own declaration)


_Loader.add_implicit_resolver(_NULL, yaml.SafeLoader.yaml_implicit_resolvers["~"][0][1], ["~", "n", "N", ""])
_Loader.add_implicit_resolver(_MERGE, yaml.SafeLoader.yaml_implicit_resolvers["<"][0][1], ["<"])


@dataclass
class YamlFile:
    value: Any
    lines: dict[Path, int] = field(default_factory=dict)  # of each key and list item, from 1
    faults: list[tuple[Path, str]] = field(default_factory=list)


def read_yaml(path: FilePath) -> YamlFile:
    """Raises SettingsError if the file can't be read or is no YAML; smaller faults are in `faults`."""
    file = YamlFile(None)
    try:
        node = yaml.compose(path.read_bytes(), Loader=_Loader)
        file.value = _Builder(file).build(node, ()) if node is not None else None
    except OSError as err:
        raise SettingsError(f"settings file {path} can't be read: {err.strerror}") from err
    except yaml.YAMLError as err:
        raise SettingsError(f"settings file {path} is not valid YAML: {_what_and_where(err)}") from None
    except RecursionError:
        raise SettingsError(f"settings file {path} is nested too deeply to be read") from None
    return file


def _what_and_where(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return "it contains bytes or characters that YAML does not allow"
    context = f" ({error.context})" if error.context else ""
    mark = error.problem_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}{context}"


class _Builder:
    def __init__(self, file: YamlFile) -> None:
        self._file = file
        self._open: set[int] = set()  # nodes being built, to notice an alias to itself

    def build(self, node: yaml.Node, path: Path) -> Any:
        self._file.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if len(path) > _DEEPEST:
            self._fault(path[:1], "is nested too deeply")
            return None
        if id(node) in self._open:
            self._fault(path, "refers to itself")
            return None
        self._open.add(id(node))
        value = self._sequence(node, path) if isinstance(node, yaml.SequenceNode) else self._mapping(node, path)
        self._open.discard(id(node))
        return value

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> str | None:
        if node.tag == _NULL:
            return None
        if node.tag not in _TEXT_TAGS:
            self._fault(path, f"has the YAML tag {node.tag.replace(_TAG, '!!')}, which has no meaning here")
        return str(node.value)

    def _sequence(self, node: yaml.SequenceNode, path: Path) -> list[Any]:
        return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged = {**self._merged(value_node, path), **merged}
                continue
            name = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
            if not name:
                self._fault(path, f"has a key that is no text, in line {key_node.start_mark.line + 1}")
            elif name in own:
                first = self._file.lines[(*path, name)]
                self._fault((*path, name), f"appears twice, in line {first} and in line {key_node.start_mark.line + 1}")
            else:
                self._file.lines[(*path, name)] = key_node.start_mark.line + 1
                own[name] = self.build(value_node, (*path, name))
        return {**merged, **own}

    def _merged(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        """What `<<: *alias` brings in; of several, the first wins."""
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for part in parts:
            value = self.build(part, path)
            if isinstance(value, dict):
                merged = {**value, **merged}
            else:
                self._fault(path, "merges (<<) something that is not a map")
        return merged

    def _fault(self, path: Path, reason: str) -> None:
        self._file.faults.append((path, reason if path else f"the file {reason}"))


def origin_in(file: YamlFile) -> dict[Path, str]:
    return {path: f"line {line}" for path, line in file.lines.items() if dotted(path)}
