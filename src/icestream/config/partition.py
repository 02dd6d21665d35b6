"""Partition expressions: `region`, `day(created_at)`, `bucket[16](id)`, `truncate[4](code)`; sort orders of those."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from icestream.model.types import Kind

_EXPRESSION = re.compile(r"(?P<transform>[A-Za-z_]+)\s*(?:\[(?P<width>[^\]]*)\])?\s*\((?P<column>.*)\)", re.DOTALL)
_BARE_COLUMN = re.compile(r"[^()\[\]]+")
_LARGEST_WIDTH = 2**31 - 1  # Iceberg keeps it in a Java int
_DIRECTION = re.compile(r"\s+(?P<direction>asc|desc)", re.IGNORECASE)
_NULLS = re.compile(r"\s+nulls\s+(?P<nulls>first|last)", re.IGNORECASE)
EXAMPLES = "`col`, `day(col)`, `bucket[16](col)` or `truncate[10](col)`"


_OF_TIME = frozenset((Kind.TIMESTAMP, Kind.TIMESTAMPTZ))
_WHOLE = frozenset((Kind.INT, Kind.LONG, Kind.DECIMAL))


class Transform(enum.StrEnum):
    IDENTITY = "identity"
    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    BUCKET = "bucket"
    TRUNCATE = "truncate"

    @property
    def takes_width(self) -> bool:
        return self in (Transform.BUCKET, Transform.TRUNCATE)

    @property
    def of_time(self) -> bool:
        return self in (Transform.YEAR, Transform.MONTH, Transform.DAY, Transform.HOUR)

    def takes(self, kind: Kind) -> bool:
        """Whether Iceberg defines the transform for columns of this kind."""
        if self is Transform.IDENTITY:
            return kind not in (Kind.LIST, Kind.VARIANT)
        if self is Transform.HOUR:
            return kind in _OF_TIME
        if self.of_time:
            return kind in _OF_TIME or kind is Kind.DATE
        cut = kind in _WHOLE or kind in (Kind.STRING, Kind.BINARY)
        return cut or (self is Transform.BUCKET and (kind in _OF_TIME or kind in (Kind.DATE, Kind.UUID)))


@dataclass(frozen=True)
class PartitionField:
    transform: Transform
    column: str
    param: int | None = None  # buckets, or width of a truncation

    @classmethod
    def parse(cls, text: str) -> PartitionField:
        """Raises ValueError with a message for the user."""
        stripped = text.strip()
        found = _EXPRESSION.fullmatch(stripped)
        if found is not None:
            return _transformed(found["transform"], found["width"], found["column"].strip())
        if _BARE_COLUMN.fullmatch(stripped):
            return cls(Transform.IDENTITY, stripped)
        raise ValueError(f"is not a partition expression; write {EXAMPLES}")

    @property
    def field_name(self) -> str:
        """The name of the partition field in Iceberg."""
        if self.transform is Transform.IDENTITY:
            return self.column
        suffix = "trunc" if self.transform is Transform.TRUNCATE else self.transform.value
        return f"{self.column}_{suffix}"

    def __str__(self) -> str:
        if self.transform is Transform.IDENTITY:
            return self.column
        width = f"[{self.param}]" if self.param is not None else ""
        return f"{self.transform.value}{width}({self.column})"


@dataclass(frozen=True)
class SortField:
    """`created_at desc nulls last`: a partition expression, its direction, and where NULLs go."""

    field: PartitionField
    descending: bool = False
    nulls_first: bool = True

    @classmethod
    def parse(cls, text: str) -> SortField:
        """Ascending with NULLs first, descending with NULLs last, unless it says otherwise. Raises ValueError."""
        rest, nulls = _cut(text.strip(), _NULLS)
        rest, direction = _cut(rest, _DIRECTION)
        descending = direction == "desc"
        return cls(PartitionField.parse(rest), descending, nulls == "first" if nulls else not descending)

    def __str__(self) -> str:
        words = [str(self.field)]
        if self.descending:
            words.append("desc")
        if self.nulls_first is self.descending:
            words.append(f"nulls {'first' if self.nulls_first else 'last'}")
        return " ".join(words)


def _cut(text: str, ending: re.Pattern[str]) -> tuple[str, str]:
    """The text without the words at its end, and the one of them that counts."""
    found = re.search(f"(?:{ending.pattern})$", text, ending.flags)
    return (text, "") if found is None else (text[: found.start()], found[1].lower())


def _transformed(name: str, width: str | None, column: str) -> PartitionField:
    try:
        transform = Transform(name.lower())
    except ValueError:
        known = ", ".join(Transform)
        raise ValueError(f"uses the unknown transform {name!r}; known are {known}") from None
    if not _BARE_COLUMN.fullmatch(column):
        raise ValueError(f"names no column; write {EXAMPLES}")
    if not transform.takes_width:
        if width is not None:
            raise ValueError(f"gives {transform} a number, which it does not take")
        return PartitionField(transform, column)
    if width is None:
        raise ValueError(f"needs a number; write `{transform}[16]({column})`")
    return PartitionField(transform, column, _width(width))


def _width(text: str) -> int:
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdigit() and 0 < int(stripped) <= _LARGEST_WIDTH):
        raise ValueError(f"needs a whole number from 1 to {_LARGEST_WIDTH} in the brackets")
    return int(stripped)


def clashes(fields: Iterable[PartitionField]) -> Iterator[str]:
    """What Iceberg refuses in one partition spec, as sentences."""
    for one, other in combinations(fields, 2):
        if one.column == other.column and one.transform.of_time and other.transform.of_time:
            yield f"partitions {one.column} by time twice ({one} and {other}); keep the finer one"
        elif one.field_name == other.field_name:
            yield f"has two fields named {one.field_name} ({one} and {other})"
