"""`types`: where a PostgreSQL type could become one of two things, and what happens to values that do not fit."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from icestream.config.scalars import Choice, Named, refuse
from icestream.config.section import Section, key

UnfitPolicy = Literal["null", "string", "fail"]
_POLICIES = ("null", "string", "fail")


def _policy(value: Any) -> Any:
    """YAML's `null` is the policy of that name."""
    if value is None:
        return "null"
    name = value.strip().lower() if isinstance(value, str) else value
    if name not in _POLICIES:
        raise refuse("must be null, string or fail, or a map of columns and these")
    return name


def _policies(value: Any) -> Any:
    if isinstance(value, dict):
        return {column: _policy(policy) for column, policy in value.items()}
    return _policy(value)


UnfitKey = Annotated[UnfitPolicy, Choice]
UnfitByColumn = Annotated[
    UnfitPolicy | dict[str, UnfitPolicy],
    Named("`null`, `string` or `fail`, or a map of columns and these"),
    BeforeValidator(_policies),
]


class TypeSettings(Section):
    numeric: Annotated[Literal["decimal(38,18)", "string"], Choice] = key(
        "decimal(38,18)",
        "What a `numeric` without precision becomes. One of more than 38 digits is always a string.",
    )
    uuid: Annotated[Literal["string", "uuid"], Choice] = key(
        "string", "What a `uuid` becomes. Range filters of Spark on Iceberg's `uuid` give wrong rows."
    )
    json_: Annotated[Literal["string", "variant"], Choice] = key(
        "string",
        "What `json` and `jsonb` become. `variant` needs `format_version` 3; a key stays a string.",
        alias="json",
    )
    arrays: Annotated[Literal["list", "string"], Choice] = key(
        "list",
        "What an array becomes: a list of its element's type, or PostgreSQL's text. A key is always a string.",
    )
    unfit: UnfitKey = key(
        "null",
        "What becomes of a value that Iceberg can't hold: a numeric that is NaN, infinite or too large; a date or "
        "time that is infinite, BC or after the year 9999; an array that is no flat list. `null`: NULL, and the "
        "value is in the table `icestream_dead_letters`. `string`: NULL, and the value is in a companion column "
        "`<column>_text`. `fail`: the table is parked. A row whose key does not fit is a dead letter in any case.",
    )
