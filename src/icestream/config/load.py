"""Makes the settings from a file, the environment and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from icestream.config.interpolation import Interpolation
from icestream.config.layers import Layer, from_environment, from_flags, overlay, prepare
from icestream.config.notices import Notice, notices_for
from icestream.config.pipelines import refuse_pipelines
from icestream.config.problems import Report, value_at, were_compared
from icestream.config.section import Path, field_at, subsection
from icestream.config.settings import Settings
from icestream.config.yaml_file import origin_in, read_yaml
from icestream.errors import SettingsError


@dataclass(frozen=True)
class Loaded:
    settings: Settings
    notices: tuple[Notice, ...]


def load(path: FilePath | None, environ: Mapping[str, str], overrides: Mapping[str, Any] | None = None) -> Loaded:
    """Settings from defaults, then the file, then variables, then `overrides` (dotted path to value).

    Reads the file and the files that hold secrets, nothing else. Raises SettingsError with every mistake at once.
    """
    report = Report()
    layers = [from_environment(environ), from_flags(overrides or {})]
    if path is not None:
        layers.insert(0, _from_file(path, environ, report))
    for layer in layers:
        prepare(layer, report)
    merged = overlay(layers)
    report.origins = merged.origins
    settings = _validated(merged.values, report)
    if settings is None or report.problems:
        raise _error(report, path)
    return Loaded(settings, notices_for(settings, merged, environ))


def _from_file(path: FilePath, environ: Mapping[str, str], report: Report) -> Layer:
    file = read_yaml(path)
    if file.value is None:
        return Layer({})
    if not isinstance(file.value, dict):
        raise SettingsError(f"settings file {path} must hold a map with `tables`, `source` and `sink` at its top level")
    refuse_pipelines(file.value, path)
    report.origins = origins = origin_in(file)
    for at, reason in file.faults:
        report.add(at, reason)
    return Layer(Interpolation(environ, report).apply(file.value), origins)


def _validated(values: dict[str, Any], report: Report) -> Settings | None:
    """Keys are compared only once each is right by itself: so what is wrong is cut out, and the rest judged again."""
    try:
        return Settings.model_validate(_without(values, report.settled) if report.settled else values)
    except ValidationError as err:
        report.add_errors(err, values)
        if were_compared(err):
            return None
    try:
        Settings.model_validate(_without(values, report.settled))
    except ValidationError as err:
        report.add_errors(err, values)
    return None


def _without(values: dict[str, Any], paths: Iterable[Path]) -> dict[str, Any]:
    result: dict[str, Any] = _copy(values)
    for path in sorted(filter(None, paths), key=len, reverse=True):
        _cut(result, path)
    return result


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _cut(values: dict[str, Any], path: Path) -> None:
    *above, last = path
    parent = value_at(values, tuple(above))
    if isinstance(parent, dict):
        parent.pop(last, None)
    elif isinstance(parent, list) and isinstance(last, int) and _holds_sections(path):
        parent[last] = {}  # the later items keep their numbers
    elif isinstance(parent, list):
        _cut(values, path[:-1])


def _holds_sections(path: Path) -> bool:
    field = field_at(Settings, path)
    return field is not None and subsection(field) is not None


def _error(report: Report, path: FilePath | None) -> SettingsError:
    problems = tuple(str(problem) for problem in report.problems)
    where = f" in {path}" if path is not None else ""
    count = "1 setting is wrong" if len(problems) == 1 else f"{len(problems)} settings are wrong"
    listed = "".join(f"\n  - {problem}" for problem in problems)
    return SettingsError(
        f"{count}{where}:{listed}", problems=problems, hint="`icestream config reference` lists every key"
    )
