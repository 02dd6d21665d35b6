"""From what is wrong to sentences a person can act on. Secrets never appear in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from icestream.config.checks import Mistake, Mistakes
from icestream.config.keys import homes_of, listed_keys, nearest_key, secret_paths
from icestream.config.masking import looks_secret, masked
from icestream.config.section import Path, annotations_in, dotted, field_at, holds_secrets
from icestream.config.settings import Settings

_LONGEST_VALUE = 80


@dataclass(frozen=True)
class Problem:
    path: Path
    reason: str
    value: str = ""  # as it may be shown
    origin: str = ""  # a line of the file, a variable, a flag

    def __str__(self) -> str:
        value = f" = {self.value}" if self.value else ""
        origin = f" ({self.origin})" if self.origin else ""
        return f"{dotted(self.path) or 'settings'}{value}{origin}: {self.reason}"


@dataclass
class Report:
    """Gathers problems, and remembers which keys have had theirs, so that none is reported twice or by consequence."""

    origins: Mapping[Path, str] = field(default_factory=dict)
    hidden: set[Path] = field(default_factory=set)  # values that came from variables with secret names
    problems: list[Problem] = field(default_factory=list)
    settled: set[Path] = field(default_factory=set)

    def add(self, path: Path, reason: str, value: object = None, *, settles: Iterable[Path] = ()) -> None:
        self.problems.append(Problem(path, reason, self._shown(path, value), self.origin_of(path)))
        self.settled.update((path, *settles))

    def add_errors(self, error: ValidationError, values: Mapping[str, Any]) -> None:
        """`values`: what was validated."""
        before = frozenset(self.settled)
        for mistake in _mistakes(error):
            if not any(_touches(path, before) for path in (mistake.path, *mistake.rests_on)):
                self.add(mistake.path, mistake.reason, mistake.value, settles=_consequences(mistake, values))

    def origin_of(self, path: Path) -> str:
        """Where the value came from; for a key that is not there, where its section came from."""
        starts = (path[:length] for length in range(len(path), 0, -1))
        return next((self.origins[start] for start in starts if start in self.origins), "")

    def _shown(self, path: Path, value: object) -> str:
        if path in self.hidden or _is_secret(path):
            return ""
        if isinstance(value, str):
            text = masked(value)
            return repr(text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…")
        return repr(value) if isinstance(value, int | float) else ""


def _is_secret(path: Path) -> bool:
    """By its type or its name; an unknown key also if it was meant to be a secret one."""
    name = next((step for step in reversed(path) if isinstance(step, str)), "")
    known = field_at(Settings, path)
    if looks_secret(name) or any(secret[-1] == name for secret in secret_paths()):
        return True
    if known is not None or not path:
        return known is not None and holds_secrets(known)
    near = nearest_key(path)
    return near is not None and (looks_secret(near) or (*path[:-1], near) in secret_paths())


def were_compared(error: ValidationError) -> bool:
    """Whether every key was right by itself, so that the error is about how they fit together."""
    return any(isinstance(_crossed(details), Mistakes) for details in error.errors(include_url=False))


def _touches(path: Path, settled: frozenset[Path]) -> bool:
    """Whether the key, one above it or one below it is settled."""
    return any(path[: len(other)] == other[: len(path)] for other in settled if other)


def _consequences(mistake: Mistake, values: Mapping[str, Any]) -> Iterator[Path]:
    """A misspelt key would be reported once more as the missing one it was meant to be, unless that is there too."""
    if mistake.reason.startswith(_UNKNOWN) and (near := nearest_key(mistake.path)):
        meant = (*mistake.path[:-1], near)
        if value_at(values, meant) is None:
            yield meant


def value_at(values: Any, path: Path) -> Any:
    """What stands at a path of maps and lists; None where it leads nowhere."""
    for step in path:
        if isinstance(values, dict):
            values = values.get(step)
        elif isinstance(values, list) and isinstance(step, int) and step < len(values):
            values = values[step]
        else:
            return None
    return values


def _mistakes(error: ValidationError) -> Iterator[Mistake]:
    for details in error.errors(include_url=False):
        crossed = _crossed(details)
        if isinstance(crossed, Mistakes):
            yield from crossed.found
        else:
            path = _path(details["loc"])
            yield Mistake(path, _reason(details, path), details["input"])


def _crossed(details: ErrorDetails) -> object:
    return details.get("ctx", {}).get("error")


def _path(location: tuple[int | str, ...]) -> Path:
    return tuple(step for step in location if step != "[key]")


_UNKNOWN = "unknown key"


def _reason(details: ErrorDetails, path: Path) -> str:
    kind, given = details["type"], details["input"]
    if kind == "refused":
        return str(details["ctx"]["reason"])
    if kind == "extra_forbidden":
        return _unknown(path)
    if kind == "literal_error":
        return _one_of(field_at(Settings, path), given)
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return f"must be a map of keys and values, not {_kind_of(given)}"
    if kind == "tuple_type":
        return f"must be a list, not {_kind_of(given)}"
    if kind == "string_type":
        return f"must be text, not {_kind_of(given)}"
    return details["msg"][:1].lower() + details["msg"][1:]


def _unknown(path: Path) -> str:
    near = nearest_key(path)
    if near is not None:
        return f"{_UNKNOWN}; did you mean {near}?"
    homes = " or ".join(home or "the top level" for home in homes_of(str(path[-1])))
    return f"{_UNKNOWN}; a key of this name belongs to {homes}" if homes else _with_keys(path[:-1])


def _with_keys(section: Path) -> str:
    keys = listed_keys(section)
    return f"{_UNKNOWN}; the keys here are {keys}" if keys else _UNKNOWN


def _one_of(known: FieldInfo | None, given: Any) -> str:
    choices = [str(choice) for choice in _choices(known)]
    near = get_close_matches(str(given).lower(), choices, 1)
    return f"must be one of {', '.join(choices)}" + (f"; did you mean {near[0]}?" if near else "")


def _choices(known: FieldInfo | None) -> Iterator[Any]:
    for part in annotations_in(known.annotation if known is not None else None):
        if get_origin(part) is Literal:
            yield from get_args(part)


def _kind_of(value: Any) -> str:
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "true or false"),
        (int, "a number"),
        (float, "a number"),
        (str, "text"),
        (list, "a list"),
        (dict, "a map"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "empty" if value is None else "this")
