"""The shape of a replicated table: its columns with their types, and the key that rows are matched by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icestream.errors import TableParked
from icestream.lake.table import Field
from icestream.model import changelog
from icestream.model.columns import LakeColumn, lake_columns
from icestream.model.table import RESERVED_NAMES, Relation, Target, WriteMode, matching_key
from icestream.model.types import target_type_of


@dataclass(frozen=True)
class Shape:
    columns: tuple[LakeColumn, ...]
    full_identity: bool = False  # every change carries the whole old row
    follows_renames: bool = True  # else a column under another name is another column

    @classmethod
    def of(cls, relation: Relation, target: Target) -> Shape:
        """In a changelog nothing is matched, so there is no key."""
        _require_free_names(relation, target)
        with_fillers = target.add_column_default == "backfill"
        follows_renames = target.rename_column == "rename"
        if target.is_changelog:
            columns = lake_columns(relation, (), target.types, with_fillers=with_fillers)
            return cls(columns, follows_renames=follows_renames)
        key = matching_key(relation, target)
        if not key:
            raise TableParked(
                f"{relation.table} has no key that its rows could be matched by",
                hint=f"add a primary key, set REPLICA IDENTITY and `primary_key` for {relation.table}, or choose"
                " `write_mode: append`",
            )
        columns = lake_columns(relation, key, target.types, with_fillers=with_fillers)
        _require_equality(columns, relation, target)
        return cls(columns, relation.is_full, follows_renames)

    def in_table(self, fields: Sequence[Field], numbers: Mapping[int, str], key: str) -> Shape:
        """This shape within all columns of the table, whose `numbers` in the source are known by their names.

        Columns that the source has no more hold what rows from before their end tell, and NULL from then on.
        """
        own, known = {column.name: column for column in self.columns}, {name: n for n, name in numbers.items()}
        columns = (own.get(field.name) or _other_column(field, known.get(field.name, 0), key) for field in fields)
        return Shape(tuple(columns), self.full_identity, self.follows_renames)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def told(self) -> list[LakeColumn]:
        """The columns that the source tells, or told once; not their companions."""
        return [column for column in self.columns if column.text_of is None]

    @property
    def keys(self) -> list[LakeColumn]:
        return [column for column in self.columns if column.is_key]

    @property
    def identity(self) -> tuple[bool, frozenset[int | str]]:
        """What rows are matched by: two relations with the same can be folded together."""
        return self.full_identity, frozenset(column.number or column.name for column in self.keys)

    def sources(self, relation: Relation) -> list[tuple[str | None, str | None]]:
        """For each told column its name in the relation; or None, and the text that its rows hold in the column."""
        names = {column.number or column.name: column.name for column in relation.columns}
        found = [(column, self._source(column, names)) for column in self.told]
        return [(name, None if name else column.filler) for column, name in found]

    def _source(self, column: LakeColumn, names: Mapping[int | str, str]) -> str | None:
        name = names.get(column.number or column.name)
        if self.follows_renames or column.is_key or name == column.name:
            return name
        return column.name if column.number == 0 and column.name in names.values() else None

    def difference(self, fields: Sequence[Field]) -> str | None:
        """What the table lacks or has otherwise; None if rows of this shape fit in."""
        have = {field.name: field.type for field in fields}
        want = {column.name: column.type.iceberg for column in self.columns}
        changes = [f"column {name!r} is new" for name in want if name not in have]
        changes += [
            f"column {name!r} is {want[name]}, the table has {have[name]}"
            for name in want
            if name in have and have[name] != want[name]
        ]
        return "; ".join(changes) or None


def row_fields(fields: Sequence[Field], target: Target) -> list[Field]:
    """Those of the row, without what a changelog adds to it."""
    return [field for field in fields if not (target.is_changelog and field.name in changelog.NAMES)]


def _require_free_names(relation: Relation, target: Target) -> None:
    taken = [column.name for column in relation.columns if column.name in RESERVED_NAMES]
    if taken:
        raise TableParked(
            f"{relation.table} has columns whose names Iceberg keeps for itself: {', '.join(taken)}",
            hint="rename them in the source",
        )
    taken = [column.name for column in relation.columns if target.is_changelog and column.name in changelog.NAMES]
    if taken:
        raise TableParked(
            f"{relation.table} has columns that `write_mode: append` adds itself: {', '.join(taken)}",
            hint="rename them in the source, or choose another `write_mode`",
        )


def _require_equality(columns: Sequence[LakeColumn], relation: Relation, target: Target) -> None:
    """Iceberg's readers do not agree on whether NaN equals NaN, and -0.0 equals 0.0."""
    floating = [column.name for column in columns if column.is_key and not column.type.can_be_identifier]
    if target.write_mode == WriteMode.EQUALITY and floating:
        raise TableParked(
            f"{relation.table} has a key of floating-point numbers ({', '.join(floating)}), which rows can't be deleted"
            " by",
            hint="choose another `write_mode`",
        )


def _other_column(field: Field, number: int, key: str) -> LakeColumn:
    type_ = target_type_of(field.type)
    if type_ is None:
        raise TableParked(
            f"{key}: column {field.name!r} of type {field.type} is none that Icestream writes",
            hint=f"drop the column, or run `icestream resync {key}`",
        )
    return LakeColumn(field.name, type_, number=number)
