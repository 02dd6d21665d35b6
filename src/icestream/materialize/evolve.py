"""What has to change in an Iceberg table so that rows of a new source shape fit in. Pure: a plan, nothing is done here.

Columns are followed by their numbers in the source, which the table remembers in a property: so a rename is a rename,
and a column that was dropped and made again under its name is another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from icestream.errors import CopyNeeded
from icestream.lake.evolution import AddedColumn, SchemaChange
from icestream.lake.table import Field
from icestream.materialize.shape import Shape
from icestream.model.columns import LakeColumn
from icestream.model.table import Relation, Target
from icestream.model.types import Kind, TargetType, target_type_of

COLUMNS = "icestream.columns"

_FIRST_WITH_DEFAULTS = 3  # format version
_WIDENINGS = {(Kind.INT, Kind.LONG), (Kind.FLOAT, Kind.DOUBLE)}


def columns_property(columns: Mapping[int, str]) -> dict[str, str]:
    """The table's memory of which of its columns is which of the source."""
    return {COLUMNS: msgspec.json.encode({str(number): name for number, name in columns.items()}).decode()}


def stored_columns(properties: Mapping[str, str]) -> dict[int, str]:
    """The name in the table by number in the source, also of columns that are gone there and kept here."""
    stored = msgspec.json.decode(properties.get(COLUMNS, "{}"), type=dict[str, str])
    return {int(number): name for number, name in stored.items()}


def columns_of(relation: Relation) -> dict[int, str]:
    """The memory of a table with the shape of this relation."""
    return {column.number: column.name for column in relation.columns if column.number}


@dataclass(frozen=True)
class Evolution:
    change: SchemaChange
    columns: Mapping[int, str]  # the table's memory after it


def plan_evolution(fields: Sequence[Field], stored: Mapping[int, str], relation: Relation, target: Target) -> Evolution:
    """Raises CopyNeeded where Iceberg can't express the change in place. The relation's columns have numbers."""
    columns = stored or _alike(fields, relation)
    live, shape = columns_of(relation), Shape.of(relation, target)
    kept = {number: name for number, name in columns.items() if _stays(number, name, live, target)}
    there = {field.name for field in fields}
    gone = {number: name for number, name in columns.items() if number not in kept and name in there}
    dropped = frozenset(gone.values() if target.drop_column == "drop" else ())
    renamed = {name: live[number] for number, name in kept.items() if live[number] != name}
    renamed |= _with_companions(renamed, there, shape)
    wanted = {column.name for column in shape.columns}
    others = [name for name in there if name not in dropped and renamed.get(name, name) == name]
    renamed |= _out_of_the_way([name for name in others if name not in kept.values()], wanted, shape)
    left = {renamed.get(name, name) for name in there - dropped}
    change = SchemaChange(
        keys=tuple(column.name for column in shape.keys),
        dropped=dropped,
        renamed=renamed,
        widened=_widened(fields, kept, shape, target),
        added=tuple(_added(column, columns, target) for column in shape.columns if column.name not in left),
    )
    memory = {number: renamed.get(name, name) for number, name in gone.items() if name not in dropped}
    return Evolution(change, memory | live)


def plan_replacement(fields: Sequence[Field], relation: Relation, target: Target) -> SchemaChange:
    """For a table whose rows are about to be replaced: the columns of the relation, and no others.

    The rows of a changelog stay, so its other columns do, too.
    """
    shape = Shape.of(relation, target)
    have = {field.name: target_type_of(field.type) for field in fields}
    want = {column.name: column.type for column in shape.columns}
    kept = {name for name, type_ in want.items() if name in have and _fits(have[name], type_)}
    others = [name for name in have if name not in kept]
    return SchemaChange(
        keys=tuple(column.name for column in shape.keys),
        dropped=frozenset() if target.is_changelog else frozenset(others),
        renamed=_out_of_the_way(others, want, shape) if target.is_changelog else {},
        widened={name: want[name] for name in kept if have[name] != want[name]},
        added=tuple(AddedColumn(name, type_) for name, type_ in want.items() if name not in kept),
    )


def _alike(fields: Sequence[Field], relation: Relation) -> dict[int, str]:
    """For a table without a memory: what is called alike is the same."""
    there = {field.name for field in fields}
    return {number: name for number, name in columns_of(relation).items() if name in there}


def _stays(number: int, name: str, live: Mapping[int, str], target: Target) -> bool:
    return number in live and (live[number] == name or target.rename_column == "rename")


def _with_companions(renamed: Mapping[str, str], there: Collection[str], shape: Shape) -> dict[str, str]:
    """The column with the texts of unfit values goes by the name of the column they did not fit into."""
    companions = {column.text_of.name: column.name for column in shape.columns if column.text_of is not None}
    moved = {}
    for old, new in renamed.items():
        if new in companions and (companion := companions[new].replace(new, old, 1)) in there:
            moved[companion] = companions[new]
    return moved


def _out_of_the_way(others: Iterable[str], wanted: Collection[str], shape: Shape) -> dict[str, str]:
    """A column that the source no longer has gives its name to one that it has."""
    companions = {column.name for column in shape.columns if column.text_of is not None}
    taken = set(others) | set(wanted)
    moved = {}
    for name in others:
        if name in wanted and name not in companions:
            moved[name] = next(new for n in range(1, len(taken) + 2) if (new := f"{name}_dropped_{n}") not in taken)
            taken.add(moved[name])
    return moved


def _added(column: LakeColumn, columns: Mapping[int, str], target: Target) -> AddedColumn:
    """`columns`: what the table had before. One that only has another name now has no default for old rows."""
    source = column.source
    is_new = column.text_of is None and column.number not in columns
    if source is None or not is_new or target.add_column_default == "null":
        return AddedColumn(column.name, column.type)
    if source.is_filled:
        raise CopyNeeded(f"{target.key}: rows from before column {column.name!r} got values that only a copy can tell")
    if source.missing is not None and target.format_version < _FIRST_WITH_DEFAULTS:
        raise CopyNeeded(
            f"{target.key}: a table of format version {target.format_version} can't give old rows the default of"
            f" column {column.name!r}"
        )
    return AddedColumn(column.name, column.type, source.missing)


def _widened(fields: Sequence[Field], kept: Mapping[int, str], shape: Shape, target: Target) -> dict[str, TargetType]:
    """By the name the column has afterwards."""
    have = {field.name: field.type for field in fields}
    found = {}
    for column in shape.told:
        if column.number not in kept or have[kept[column.number]] == column.type.iceberg:
            continue
        now = target_type_of(have[kept[column.number]])
        if not _fits(now, column.type):
            raise CopyNeeded(
                f"{target.key}: column {column.name!r} became {column.type.iceberg}, which Iceberg can't make of"
                f" {have[kept[column.number]]}"
            )
        found[column.name] = column.type
    return found


def _fits(now: TargetType | None, want: TargetType) -> bool:
    """Whether Iceberg can make the wanted type of the one that is there, if it is not the same."""
    if now is None or now == want:
        return now == want
    if now.kind is Kind.DECIMAL and want.kind is Kind.DECIMAL:
        return now.scale == want.scale and now.precision <= want.precision
    return (now.kind, want.kind) in _WIDENINGS
