"""Where the rows of a source table lie, and what it means when they lie elsewhere.

The stream tells of rows that are inserted, updated and deleted. It does not tell of a table that is rewritten
(`ALTER TYPE … USING`), nor of partitions that come and go with their rows. All of that leaves traces in the catalog.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

_TEXT, _VARCHAR, _XML, _BIT, _VARBIT = 25, 1043, 142, 1560, 1562
# Types that share their bytes and are written alike, so that rows from before need no other text.
_WRITTEN_ALIKE = {(_TEXT, _VARCHAR), (_VARCHAR, _TEXT), (_XML, _TEXT), (_XML, _VARCHAR), (_BIT, _VARBIT)}
_KEEP_VALUES = {(21, 23), (21, 20), (23, 20), (700, 701)}  # of int2, int4, int8; float4, float8


class ColumnTrace(msgspec.Struct, frozen=True, array_like=True):
    changed: str  # the transaction that last did
    type_oid: int
    typmod: int


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """A relation of the table: itself, or one below a partitioned table.

    The numbers of transactions are those of rows of the catalog: such a row is written anew with every change.
    """

    oid: int
    name: str
    made: str  # the transaction that created it
    file: int = 0  # of its rows; 0: it holds none itself
    toast: int = 0  # the relation with its large values; 0: none
    columns: Mapping[int, ColumnTrace] = {}  # by number
    parent: int = 0  # 0: the table itself
    linked: str = ""  # the transaction that made it a part of its parent
    rewrites: int = 0  # that the event triggers have noted
    expressions: int = 0  # how many of them were not just casts to another type


class Footprint(msgspec.Struct, frozen=True):
    parts: tuple[Part, ...]
    horizon: str  # every transaction before this one had ended
    # Of the enums in its columns by the oid of the value; of composite types, by their negative oid, what they hold.
    labels: Mapping[int, str] = {}
    trigger: str | None = None  # the event triggers of the source, if it has them

    def is_like(self, other: Footprint) -> bool:
        """Whether it tells the same, though from another moment."""
        return msgspec.structs.replace(self, horizon="") == msgspec.structs.replace(other, horizon="")

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Footprint:
        return msgspec.json.decode(text, type=cls)


class Question(enum.Enum):
    """What the rows of a relation can still tell."""

    HOLDS_OLDER = "rows from before a transaction"  # then it was not emptied
    HOLDS_OWN = "rows of a transaction"  # then they were written before the relation was a part, and not sent
    HOLDS_ANY = "any rows"  # then they came with it


@dataclass(frozen=True)
class Suspicion:
    """Why the rows that were copied and streamed may not be those of the table. Without a question it is certain."""

    reason: str
    question: Question | None = None
    oid: int = 0
    xid: str = ""


def suspicions(before: Footprint, now: Footprint) -> Iterator[Suspicion]:
    known, there = {part.oid: part for part in before.parts}, {part.oid: part for part in now.parts}
    for part in before.parts:
        if part.oid not in there:
            yield Suspicion(f"partition {part.name} is no longer there")
    for part in now.parts:
        if part.oid in known:
            yield from _of_known(known[part.oid], part, before, now.trigger)
        elif part.file:
            yield _of_new(part, known, there)
    if any(before.labels[oid] != label for oid, label in now.labels.items() if oid in before.labels):
        yield Suspicion("a value of an enum was renamed, or a composite type holds something else")


def _of_known(before: Part, now: Part, whole: Footprint, trigger: str | None) -> Iterator[Suspicion]:
    if before.linked != now.linked:
        yield Suspicion(f"partition {now.name} was away for a while")
    elif before.file == now.file:
        if now.file and _is_written_otherwise(before, now):
            yield Suspicion(f"a column of {now.name} got a type that writes the same bytes otherwise")
    elif _is_rewritten(before, now) and not (trigger and trigger == whole.trigger and _keeps_values(before, now)):
        yield Suspicion(f"{now.name} was rewritten")
    elif now.parent:
        # A truncated partition is not told; one that VACUUM FULL or CLUSTER has moved still has its rows.
        yield Suspicion(f"partition {now.name} was truncated", Question.HOLDS_OLDER, now.oid, whole.horizon)


def _is_rewritten(before: Part, now: Part) -> bool:
    """Whether values may be others now. VACUUM FULL, CLUSTER, TRUNCATE and a new tablespace change no column.

    The first two can clear a column's note of its default, but they keep the relation of large values, and ALTER TABLE
    makes a new one.
    """
    if before.toast and before.toast == now.toast:
        return False
    return any(before.columns.get(number) != trace for number, trace in now.columns.items())


def _is_written_otherwise(before: Part, now: Part) -> bool:
    """Whether rows that were not touched have other texts now: of int4 and oid, say, or of cidr and inet."""
    types = {
        number: (trace.type_oid, now.columns[number].type_oid)
        for number, trace in before.columns.items()
        if number in now.columns
    }
    return any(old != new and (old, new) not in _WRITTEN_ALIKE for old, new in types.values())


def _keeps_values(before: Part, now: Part) -> bool:
    """Whether the event triggers have noted nothing but casts that keep every value: columns get wider in place.

    That they have noted nothing at all proves nothing: they may have been disabled for a while.
    """
    if before.rewrites == now.rewrites or before.expressions != now.expressions:
        return False
    return {_cast(before.columns.get(number), trace) for number, trace in now.columns.items()} <= {None, *_KEEP_VALUES}


def _cast(before: ColumnTrace | None, now: ColumnTrace) -> tuple[int, int] | None:
    """From which type to which; None where it is the same."""
    if before is not None and (before.type_oid, before.typmod) == (now.type_oid, now.typmod):
        return None
    return (before.type_oid if before else 0), now.type_oid


def _of_new(part: Part, known: Mapping[int, Part], there: Mapping[int, Part]) -> Suspicion:
    """One that was created as a partition has only rows that were streamed; one that was attached may bring others."""
    reason = f"partition {part.name} was attached"
    if part.file != part.oid:
        return Suspicion(f"{reason}, or truncated since it was created")
    link: Part | None = part
    while link is not None and link.parent and link.oid not in known:
        if link.made != link.linked:
            return Suspicion(reason, Question.HOLDS_ANY, part.oid)
        link = there.get(link.parent)
    return Suspicion(reason, Question.HOLDS_OWN, part.oid, part.made)
