"""Which columns of the source a relation message means.

The stream tells names and types only. The numbers of columns, which a rename keeps and a new column never gets again,
are in the catalog; but that is the catalog of now, and a message may be older. So a relation is identified by the
catalog where both say the same, else by what was known of the table before; what stays in doubt has the number 0.
Where the source has Icestream's event triggers, these have told the numbers, and nothing is in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from icestream.model.table import Column, Relation

# Gives the relation as the catalog has it now; None if the table is gone.
ReadRelation: TypeAlias = Callable[[int], Relation | None]


class Identifier:
    """Lives as long as one connection; used by the flusher's thread.

    Every telling of a relation is an object of its own, also where its words are the same.
    """

    def __init__(self, read: ReadRelation, known: Mapping[int, Relation]) -> None:
        """`known`: the newest identified relation of each table, by oid."""
        self._read = read
        self._known = dict(known)
        self._certain: set[int] = set()  # tables whose event triggers have told the newest that is known
        self._identified: dict[int, tuple[Relation, Relation]] = {}  # by id; the told one is held, so ids stay its own

    def identify(self, told: Relation, *, is_newest: bool) -> Relation:
        """The relation with its column numbers. `is_newest`: the stream has told nothing newer of this table so far."""
        if id(told) not in self._identified:
            identified = self._identify(told, is_newest=is_newest)
            self._known[told.oid] = identified
            self._forget_older(told.oid)
            self._identified[id(told)] = told, identified
        return self._identified[id(told)][1]

    def _identify(self, told: Relation, *, is_newest: bool) -> Relation:
        known = self._known.get(told.oid)
        now = self._read(told.oid)
        if told.is_numbered:
            self._certain.add(told.oid)
            return _completed(told, known, now)
        if not is_newest and known is not None and known.as_told() == told:
            return known if told.oid in self._certain else _undoubted(known, now)
        self._certain.discard(told.oid)
        if is_newest and now is not None and now.as_told() == told:
            return now
        return _derived(told, known, now)

    def _forget_older(self, oid: int) -> None:
        """A table's relations come in the order they were told: an older one is not asked for again."""
        for key, (told, _) in list(self._identified.items()):
            if told.oid == oid:
                del self._identified[key]


def _completed(told: Relation, known: Relation | None, now: Relation | None) -> Relation:
    """The numbers are certain; what else the catalog knows of a column it says under its number, now or before."""
    facts = {column.number: column for relation in (known, now) if relation for column in relation.columns}
    columns = (_with_facts(column, facts.get(column.number, column)) for column in told.columns)
    return msgspec.structs.replace(told, columns=tuple(columns))


def _undoubted(known: Relation, now: Relation | None) -> Relation:
    """What was known before, but for columns that have given their names to others since: it may mean those already."""
    later = {column.name: column.number for column in now.columns} if now else {}
    columns = (
        msgspec.structs.replace(column, number=0) if later.get(column.name, column.number) != column.number else column
        for column in known.columns
    )
    return msgspec.structs.replace(known, columns=tuple(columns))


def _derived(told: Relation, known: Relation | None, now: Relation | None) -> Relation:
    """From what was known before and what there is now.

    A column that was there before and is there now was there in between. The stream tells columns in the order of their
    numbers, so the ones that kept theirs under another name come first among those that are called anew.
    """
    before = {column.name: column for column in known.columns} if known else {}
    after = {column.name: column for column in now.columns} if now else {}
    came = [column.name for column in told.columns if column.name not in before]
    names = {column.name for column in told.columns}
    gone = sorted(column.number for column in before.values() if column.name not in names)
    renamed = dict(zip(came, gone, strict=False)) if _are_all_there(gone, after) else {}
    is_certain = not gone or not came or bool(renamed)
    highest = max((column.number for column in before.values()), default=0)

    def identified(column: Column) -> Column:
        if column.name in before:
            return _with_facts(column, before[column.name])
        if column.name in renamed:
            return msgspec.structs.replace(column, number=renamed[column.name])
        later = after.get(column.name)
        is_new = later is not None and later.number > highest and later.type_oid == column.type_oid
        return _with_facts(column, later) if later and is_new and is_certain else column

    return _in_order(msgspec.structs.replace(told, columns=tuple(identified(column) for column in told.columns)))


def _are_all_there(numbers: list[int], now: Mapping[str, Column]) -> bool:
    return bool(numbers) and set(numbers) <= {column.number for column in now.values()}


def _in_order(relation: Relation) -> Relation:
    """Numbers that do not grow are wrong: columns exchanged their names."""
    numbers = [column.number for column in relation.columns if column.number]
    if numbers == sorted(numbers):
        return relation
    return msgspec.structs.replace(
        relation, columns=tuple(msgspec.structs.replace(column, number=0) for column in relation.columns)
    )


def _with_facts(column: Column, facts: Column) -> Column:
    same_type = column.type_oid == facts.type_oid
    return msgspec.structs.replace(
        column,
        number=facts.number,
        is_primary=facts.is_primary,
        base_oid=facts.base_oid if same_type else 0,
        base_typmod=facts.base_typmod if same_type else -1,
        element_oid=facts.element_oid if same_type else 0,
        missing=facts.missing,
        is_filled=facts.is_filled,
    )
