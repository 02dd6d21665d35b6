"""What is said at the start about keys that are set and do nothing, so that none is ignored in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from icestream.config import catalog
from icestream.config.environment import WITHOUT_EFFECT
from icestream.config.layers import Layer
from icestream.config.section import Path, Section, dotted, facts_of
from icestream.config.settings import Settings
from icestream.config.sink import SinkSettings

_S3_PLACE = ("s3_endpoint", "s3_region")
_S3_KEYS = ("s3_access_key", "s3_secret_key")


@dataclass(frozen=True)
class Notice:
    key: str  # dotted path, or the name of a variable
    message: str  # continues the sentence that starts with the key
    origin: str = ""

    def __str__(self) -> str:
        origin = f" ({self.origin})" if self.origin else ""
        return f"{self.key}{origin} {self.message}"


def notices_for(settings: Settings, layer: Layer, environ: Mapping[str, str]) -> tuple[Notice, ...]:
    """`layer`: what the settings were made from."""
    found = (
        *_of_keys(settings, ()),
        *_of_s3(settings.sink),
        *_of_auth(settings.sink),
        *_of_schema(settings, layer.values),
    )
    keys = tuple(Notice(dotted(path), message, layer.origins.get(path, "")) for path, message in found)
    variables = tuple(Notice(name, why, "variable") for name, why in WITHOUT_EFFECT.items() if environ.get(name))
    return keys + variables


def _of_keys(section: Section, at: Path) -> Iterator[tuple[Path, str]]:
    for name, field in type(section).model_fields.items():
        if name not in section.model_fields_set:
            continue
        value, path = getattr(section, name), (*at, field.alias or name)
        # A feature that is switched off does what it says already.
        if (notice := facts_of(field).notice) and value:
            yield path, notice
        yield from _inside(value, path)


def _inside(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, Section):
        yield from _of_keys(value, path)
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            if isinstance(item, Section):
                yield from _of_keys(item, (*path, index))


def _of_s3(sink: SinkSettings) -> Iterator[tuple[Path, str]]:
    unused: tuple[str, ...]
    if not catalog.uses_s3(sink):
        unused, why = (*_S3_PLACE, *_S3_KEYS), "the warehouse is not in an S3 store"
    elif (mode := catalog.credential_mode(sink)) != "static":
        unused, why = _S3_KEYS, f"credential_mode is {mode}"
    else:
        return
    for name in unused:
        if name in sink.model_fields_set and getattr(sink, name):
            yield ("sink", name), f"has no effect: {why}"


def _of_auth(sink: SinkSettings) -> Iterator[tuple[Path, str]]:
    for auth, names in catalog.NEEDED_BY_AUTH.items():
        for name in names:
            if sink.catalog_auth != auth and getattr(sink, name):
                yield ("sink", name), f"has no effect: it is for catalog_auth {auth}, and that is {sink.catalog_auth}"


def _of_schema(settings: Settings, values: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    written = (values.get("state") or {}).get("coordinator_schema")
    used = settings.state.coordinator_schema
    if written and written != used:
        yield ("state", "coordinator_schema"), f"is used as {used}, made from {written!r}"
