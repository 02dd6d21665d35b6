"""The settings of one origin (file, variables, flags), made comparable, and laid over each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from icestream.config.conninfo import parse_conninfo, what_is_wrong
from icestream.config.environment import all_variables, flag_of
from icestream.config.keys import POSTGRES, URL, file_key, secret_paths
from icestream.config.locations import expanded
from icestream.config.problems import Report
from icestream.config.section import Path, dotted

_FIELD_BY_PARAMETER = {
    "dbname": "database",
    **{
        name: name
        for name in (
            *("host", "port", "user", "password", "sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword"),
            *("connect_timeout", "application_name", "options"),
        )
    },
}


_FILLED_BY_URL = tuple((*POSTGRES, name) for name in ("host", "database", "user"))


@dataclass
class Layer:
    values: dict[str, Any]
    origins: dict[Path, str] = field(default_factory=dict)


def from_environment(environ: Mapping[str, str]) -> Layer:
    """An empty variable counts as not set, as in shells and compose files."""
    layer = Layer({})
    for name, path in all_variables().items():
        if value := environ.get(name):
            _put(layer, path, value, name)
    return layer


def from_flags(overrides: Mapping[str, Any]) -> Layer:
    """`overrides` maps dotted paths to values; None stands for a flag that was not given."""
    layer = Layer({})
    for name, value in overrides.items():
        if value is not None:
            path = tuple(name.split("."))
            _put(layer, path, value, flag_of(path))
    return layer


def _put(layer: Layer, path: tuple[str, ...], value: Any, origin: str) -> None:
    section = layer.values
    for step in path[:-1]:
        section = section.setdefault(step, {})
    section[path[-1]] = value
    layer.origins[path] = origin


def prepare(layer: Layer, report: Report) -> None:
    """Reads secret files and takes a URL apart, so that layers can be compared key by key."""
    report.origins = layer.origins
    for path in secret_paths():
        _read_secret(layer, path, report)
    _take_url_apart(layer, report)


def _section(values: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """The map at a path; an empty one, not connected to anything, where there is none."""
    current: Any = values
    for step in path:
        current = current.get(step) if isinstance(current, dict) else None
    return current if isinstance(current, dict) else {}


def _read_secret(layer: Layer, path: tuple[str, ...], report: Report) -> None:
    section, from_file = _section(layer.values, path[:-1]), file_key(path)
    name = section.pop(from_file[-1], None)
    if name is None:
        return
    if section.get(path[-1]) is not None:
        report.add(from_file, f"and {dotted(path)} are both given; keep one", settles=(path,))
    elif (secret := _content(name, from_file, report)) is not None:
        section[path[-1]] = secret
        layer.origins[path] = layer.origins.get(from_file, "")
    else:
        report.settled.update((path, *(_FILLED_BY_URL if path == URL else ())))


def _content(name: Any, path: Path, report: Report) -> str | None:
    if not isinstance(name, str):
        report.add(path, "must be the name of a file")
        return None
    try:
        return expanded(name).read_text("utf-8").rstrip("\r\n")
    except OSError as err:
        report.add(path, f"the file {name} can't be read: {err.strerror}")
    except ValueError:
        report.add(path, f"the file {name} is not UTF-8 text")
    return None


def _take_url_apart(layer: Layer, report: Report) -> None:
    """Fills in what the URL says; a key given beside the URL wins over it."""
    section = _section(layer.values, POSTGRES)
    url = section.pop("url", None)
    if url is None or url == "":
        return
    parameters = parse_conninfo(url) if isinstance(url, str) else None
    if parameters is None:
        report.add(URL, what_is_wrong(url if isinstance(url, str) else ""), settles=_FILLED_BY_URL)
        return
    for name, value in parameters.items():
        _fill(layer, section, name, value)


def _fill(layer: Layer, section: dict[str, Any], name: str, value: str) -> None:
    origin = layer.origins.get(URL, "")
    known = _FIELD_BY_PARAMETER.get(name)
    if known is None:
        section.setdefault("parameters", {}).setdefault(name, value)
        layer.origins.setdefault((*POSTGRES, "parameters", name), origin)
    elif section.get(known) is None:
        section[known] = f"{value}s" if name == "connect_timeout" else value
        layer.origins[(*POSTGRES, known)] = origin


def overlay(layers: Iterable[Layer]) -> Layer:
    """Later layers win, key by key."""
    result = Layer({})
    for layer in layers:
        higher = dict(layer.values)
        if "tables" in higher and isinstance(higher["tables"], str):
            higher["tables"] = _picked(result.values.get("tables"), higher["tables"])
            result.origins = {path: origin for path, origin in result.origins.items() if path[0] != "tables"}
        result.values = _merged(result.values, higher)
        result.origins |= layer.origins
    return result


def _merged(lower: Mapping[str, Any], higher: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for name, value in higher.items():
        below = merged.get(name)
        if not isinstance(value, dict) or below is None:
            merged[name] = value
        elif isinstance(below, dict):
            merged[name] = _merged(below, value)
        # What is no section although it should be one stays, to be reported.
    return merged


def _picked(entries: Any, names: str) -> list[dict[str, Any]]:
    """TABLES says which tables; what the file says about one of them still holds."""
    known = {entry.get("name"): entry for entry in entries or () if isinstance(entry, dict)}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    return [known.get(name, {"name": name}) for name in wanted]
