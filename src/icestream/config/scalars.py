"""The types of single values: what is taken from YAML, from an interpolated text, and from the environment alike.

A number or a truth value may come as text (`port: ${PORT}`); a text never comes as a number, because YAML
would already have lost its leading zeros. An empty text stands for "not set" wherever text is not the type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, SecretStr
from pydantic_core import PydanticCustomError, PydanticUseDefault

from icestream.config.units import (
    DURATION_EXAMPLES,
    SIZE_EXAMPLES,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)

_WHOLE = re.compile(r"[+-]?[0-9]+")
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Named:
    """How the reference calls a type."""

    name: str


def refuse(reason: str) -> PydanticCustomError:
    """The error a validator raises; `reason` continues the sentence that starts with the key."""
    return PydanticCustomError("refused", "{reason}", {"reason": reason})


def _blank_is_not_set(value: Any) -> Any:
    if value == "":
        raise PydanticUseDefault
    return value


def _flag(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    _blank_is_not_set(value)
    if isinstance(value, str) and value.strip().lower() in _FLAGS:
        return _FLAGS[value.strip().lower()]
    raise refuse("must be true or false")


def _whole(value: Any) -> Any:
    _blank_is_not_set(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    raise refuse("must be a whole number")


def _choice(value: Any) -> Any:
    _blank_is_not_set(value)
    return value.strip().lower() if isinstance(value, str) else value


def _list(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return value
    raise refuse("must be a list")


def _properties(value: Any) -> Any:
    """Iceberg's and Spark's properties are texts; people write `true` and `8` without quotes."""
    if not isinstance(value, dict):
        raise refuse("must be a map of property names and values")
    return {name: _property_text(item) for name, item in value.items()}


def _property_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _duration(value: Any) -> Any:
    _blank_is_not_set(value)
    if isinstance(value, int | float):
        raise refuse(f"needs a unit, {DURATION_EXAMPLES}")
    return _parsed(parse_duration, value, f"must be a duration, {DURATION_EXAMPLES}")


def _duration_or_off(value: Any) -> Any:
    return None if value == "" else _duration(value)


def _byte_size(value: Any) -> Any:
    _blank_is_not_set(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return _parsed(parse_size, value, f"must be a size, {SIZE_EXAMPLES}")


def _parsed(parse: Callable[[str], Any], value: Any, otherwise: str) -> Any:
    if not isinstance(value, str):
        raise refuse(otherwise)
    try:
        return parse(value)
    except ValueError as err:
        raise refuse(str(err)) from err


def at_least(least: float, written: str = "") -> AfterValidator:
    def check(value: Any) -> Any:
        if value is not None and value < least:
            raise refuse(f"must be at least {written or least}")
        return value

    return AfterValidator(check)


Text = Annotated[str, Named("text")]
Flag = Annotated[bool, Named("true or false"), BeforeValidator(_flag)]
Whole = Annotated[int, Named("whole number"), BeforeValidator(_whole)]
Secret = Annotated[SecretStr, Named("text, secret"), BeforeValidator(_blank_is_not_set)]
Choice = BeforeValidator(_choice)
TextList = Annotated[tuple[str, ...], Named("list of texts"), BeforeValidator(_list)]
Properties = Annotated[dict[str, str], Named("map of texts"), BeforeValidator(_properties)]
_AsDuration = PlainSerializer(format_duration, when_used="json")
Duration = Annotated[float, Named("duration"), _AsDuration, BeforeValidator(_duration)]  # seconds
OffDuration = Annotated[
    float | None,
    Named("duration, or empty for off"),
    PlainSerializer(lambda value: "" if value is None else format_duration(value), when_used="json"),
    BeforeValidator(_duration_or_off),
]
ByteSize = Annotated[
    int,
    Named("size"),
    PlainSerializer(format_size, when_used="json"),
    BeforeValidator(_byte_size),
    at_least(0),
]
