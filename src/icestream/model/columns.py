"""The columns of an Iceberg table, as its source table and the rules for types make them. Both roads fill these."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from icestream.errors import TableParked
from icestream.model.table import Column, Relation
from icestream.model.type_rules import TypeRules, Unfit
from icestream.model.types import STRING, TargetType, target_type

_COMPANION_SUFFIX = "_text"


@dataclass(frozen=True)
class LakeColumn:
    name: str
    type: TargetType
    is_key: bool = False
    unfit: Unfit = Unfit.NULL
    text_of: LakeColumn | None = None  # a companion: the column whose unfit values it holds as text
    source: Column | None = field(default=None, compare=False)  # where its values come from
    number: int = 0  # of the column in the source; 0: not known, or a companion
    filler: str | None = None  # PostgreSQL's text of what rows from before the column hold

    @property
    def leaves_letters(self) -> bool:
        """Whether a value may be refused: one that does not fit, or a key that is none."""
        return self.is_key or (self.type.can_be_unfit and self.unfit is not Unfit.STRING)


def lake_columns(
    relation: Relation, keys: Collection[str], rules: TypeRules, *, with_fillers: bool = True
) -> tuple[LakeColumn, ...]:
    """In the order of the source, a companion right behind its column. Raises TableParked if its name is taken.

    `with_fillers`: rows from before a column was added hold its default, and not NULL.
    """
    sources = relation.columns if with_fillers else tuple(map(_without_default, relation.columns))
    columns = tuple(made for column in sources for made in _made_of(column, column.name in keys, rules))
    taken = {column.name for column in relation.columns}
    for column in columns:
        if column.text_of is not None and column.name in taken:
            raise TableParked(
                f"{relation.table}: the text of unfit values of {column.text_of.name!r} would go to {column.name!r}, "
                "which is a column of the source",
                hint=f"choose `null` or `fail` for {column.text_of.name} in `tables[].iceberg.unfit`",
            )
    return columns


def naming_columns(columns: Sequence[LakeColumn]) -> list[LakeColumn]:
    """Those that tell a person which row is meant: the key, else the primary key of the source, if it has one."""
    told = [column for column in columns if column.text_of is None]
    keys = [column for column in told if column.is_key]
    return keys or [column for column in told if column.source is not None and column.source.is_primary]


def _made_of(column: Column, is_key: bool, rules: TypeRules) -> Iterator[LakeColumn]:
    policy = rules.policy(column.name)
    own = LakeColumn(
        column.name,
        target_type(column, rules, is_key=is_key),
        is_key,
        policy,
        source=column,
        number=column.number,
        filler=column.missing,
    )
    yield own
    if policy is Unfit.STRING and own.type.can_be_unfit and not is_key:
        yield LakeColumn(column.name + _COMPANION_SUFFIX, STRING, text_of=own, source=column)


def _without_default(column: Column) -> Column:
    return msgspec.structs.replace(column, missing=None)
