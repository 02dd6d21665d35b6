"""What every part of the settings has in common: frozen, closed, and each key described once, beside its type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from pydantic.fields import FieldInfo

from icestream.config.masking import masked

Path = tuple[str | int, ...]


class Section(BaseModel):
    # `hide_input_in_errors` keeps secrets out of a pydantic error that somebody prints.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _a_key_without_value_is_not_set(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None or key not in keys_of(cls)}

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, masked(value) if isinstance(value, str) else value


def keys_of(section: type[Section]) -> dict[str, FieldInfo]:
    """The keys of a section as they are written; a field has another name where pydantic needs the key's itself."""
    return {field.alias or name: field for name, field in section.model_fields.items()}


@dataclass(frozen=True)
class KeyFacts:
    """What the reference and the notices say about a key, beyond its type."""

    notice: str = ""  # said when the key is set although it does nothing
    upstream: str = ""  # where pg2iceberg's default differs
    default_text: str = ""  # for a default that is computed


def key(
    default: Any = ...,
    description: str = "",
    *,
    default_factory: Callable[[], Any] | None = None,
    notice: str = "",
    upstream: str = "",
    default_text: str = "",
    show: bool = True,
    **constraints: Any,
) -> Any:
    """A field of a section. `show=False` keeps the value out of `repr`, for maps that may hold secrets."""
    facts = KeyFacts(notice=notice, upstream=upstream, default_text=default_text)
    value = {"default_factory": default_factory} if default_factory is not None else {"default": default}
    return Field(**value, description=description, repr=show, json_schema_extra={"facts": facts}, **constraints)  # type: ignore[dict-item]


def facts_of(field: FieldInfo) -> KeyFacts:
    extra = field.json_schema_extra
    facts = extra.get("facts") if isinstance(extra, dict) else None
    return facts if isinstance(facts, KeyFacts) else KeyFacts()


def annotations_in(annotation: Any) -> Iterator[Any]:
    """The annotation and everything inside it: members of a union, elements of a tuple."""
    yield annotation
    inner = get_args(annotation)[:1] if get_origin(annotation) is Annotated else get_args(annotation)
    for part in inner:
        yield from annotations_in(part)


def subsection(field: FieldInfo) -> type[Section] | None:
    """The section a key holds, or a list of which it holds."""
    for part in annotations_in(field.annotation):
        if isinstance(part, type) and issubclass(part, Section):
            return part
    return None


def is_secret(field: FieldInfo) -> bool:
    return any(part is SecretStr for part in annotations_in(field.annotation))


def is_list(field: FieldInfo) -> bool:
    return any(get_origin(part) is tuple for part in annotations_in(field.annotation))


def walk(section: type[Section], at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """Every key below a section with its path; a list of sections appears as `name[]`, one without effect as a key."""
    for name, field in keys_of(section).items():
        inner = subsection(field)
        if inner is None or facts_of(field).notice:
            yield (*at, name), field
        else:
            yield from walk(inner, (*at, f"{name}[]" if is_list(field) else name))


def holds_secrets(field: FieldInfo) -> bool:
    """Whether the key, or one below it, is secret."""
    inner = subsection(field)
    return is_secret(field) or (inner is not None and any(is_secret(below) for _, below in walk(inner)))


def field_at(section: type[Section], path: Path) -> FieldInfo | None:
    """The field a path of the settings leads to; None where the path leaves the known keys."""
    current: type[Section] | None = section
    field: FieldInfo | None = None
    for step in path:
        if isinstance(step, int):
            continue
        if current is None:
            return field
        field = keys_of(current).get(step)
        if field is None:
            return None
        current = subsection(field)
    return field


def section_at(root: type[Section], path: Path) -> type[Section] | None:
    field = field_at(root, path)
    if not any(isinstance(step, str) for step in path):
        return root
    return subsection(field) if field is not None else None


def dotted(path: Path) -> str:
    """`("tables", 1, "name")` as a person writes it: `tables[1].name`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
