"""Changing the columns of a table that is there, in one commit."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from itertools import count

from icestream.errors import CopyNeeded, LakeError, LakeUnavailable, PublishRefused
from icestream.lake.java import JAVA_ERRORS, Java, JavaError, error_classes, error_message, is_final, string_array
from icestream.lake.schema import iceberg_type
from icestream.lake.table import IcebergTable
from icestream.model import changelog
from icestream.model.types import Kind, TargetType

_TEMPORARY = "icestream_renamed_{}"
_HIDDEN = "icestream_copy_{}"
_NO_IDENTIFIERS = ("float", "double")


@dataclass(frozen=True)
class AddedColumn:
    name: str
    type: TargetType
    default: str | None = None  # PostgreSQL's text of what rows from before the column hold; None: NULL


@dataclass(frozen=True)
class SchemaChange:
    """Columns are dropped, then renamed, then widened and added; each step uses the names of the one before."""

    keys: tuple[str, ...]  # afterwards; they are required, everything else may be NULL
    dropped: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    widened: Mapping[str, TargetType] = field(default_factory=dict)
    added: tuple[AddedColumn, ...] = ()

    def is_needed(self, table: IcebergTable) -> bool:
        required = {column.name for column in table.fields() if column.required}
        return bool(self.dropped or self.renamed or self.widened or self.added) or required != set(self.keys)


def evolve(table: IcebergTable, change: SchemaChange, properties: Mapping[str, str]) -> None:
    """Make the change and set `properties`, all or nothing.

    Readers see the new columns at once, with the rows that are there. Raises CopyNeeded if a default is none that the
    column can hold, PublishRefused if the table moved meanwhile, LakeError if Iceberg refuses the change.
    """

    def make(transaction: Java) -> None:
        _change(table, transaction, change)
        update = transaction.updateProperties()
        for key, value in properties.items():
            update.set(key, value)
        update.commit()

    try:
        table.commit(make)
    except JAVA_ERRORS as err:
        raise _failure(table, err) from err


def planned_schema(table: IcebergTable, change: SchemaChange) -> Java:
    """The columns that the change would make. Nothing is committed."""
    try:
        return table.changed(lambda transaction: _change(table, transaction, change)).schema()
    except JAVA_ERRORS as err:
        raise _failure(table, err) from err


def halves(change: SchemaChange, taken: Collection[str]) -> tuple[SchemaChange, SchemaChange]:
    """The change in two: the first hides nothing from readers and lets rows of both shapes be written.

    Until the second, columns that are added have other names than those that are `taken`.
    """
    free = (name for number in count(1) if (name := _HIDDEN.format(number)) not in taken)
    hidden = dict(zip(free, change.added, strict=False)) if change.added else {}
    first = SchemaChange(
        keys=(),
        widened=change.widened,
        added=tuple(replace(column, name=name) for name, column in hidden.items()),
    )
    renamed = {name: column.name for name, column in hidden.items()}
    return first, SchemaChange(keys=change.keys, dropped=change.dropped, renamed=renamed)


def _change(table: IcebergTable, transaction: Java, change: SchemaChange) -> None:
    for step in _steps(table, change):
        update = transaction.updateSchema().allowIncompatibleChanges()
        step(update)
        update.commit()


def _steps(table: IcebergTable, change: SchemaChange) -> list[Callable[[Java], None]]:
    steps: list[Callable[[Java], None]] = [lambda update: _drop(table, update, change)]
    if change.renamed:
        steps.append(lambda update: _rename(table, update, change, to_final=False))
        steps.append(lambda update: _rename(table, update, change, to_final=True))
    return [*steps, lambda update: _shape(table, update, change)]


def _drop(table: IcebergTable, update: Java, change: SchemaChange) -> None:
    """Beside that, no column is a key while names change hands."""
    update.setIdentifierFields(string_array(table.jvm, []))
    for column in table.fields():
        if column.name in change.dropped:
            for parent in _parents(table):
                update.deleteColumn(parent + column.name)
        elif column.required:
            update.makeColumnOptional(column.name)


def _rename(table: IcebergTable, update: Java, change: SchemaChange, *, to_final: bool) -> None:
    """By way of other names: two columns may have exchanged theirs."""
    for number, (old, new) in enumerate(change.renamed.items()):
        temporary = _TEMPORARY.format(number)
        before, after = (temporary, new) if to_final else (old, temporary)
        for parent in _parents(table):
            update.renameColumn(parent + before, after)


def _shape(table: IcebergTable, update: Java, change: SchemaChange) -> None:
    for name, type_ in change.widened.items():
        for parent in _parents(table):
            update.updateColumn(parent + name, iceberg_type(table.jvm, type_))
    for column in change.added:
        default = [] if column.default is None else [literal(table.jvm, column)]
        # Named with a parent, though there is none: so a dot is part of the name.
        update.addColumn(None, column.name, iceberg_type(table.jvm, column.type), *default)
        if len(_parents(table)) > 1:  # without the default: no old row had the column
            update.addColumn(changelog.BEFORE, column.name, iceberg_type(table.jvm, column.type))
    for name in change.keys:
        update.requireColumn(name)
    if not _floating(table, change).intersection(change.keys):
        update.setIdentifierFields(string_array(table.jvm, change.keys))


def _parents(table: IcebergTable) -> tuple[str, ...]:
    """Where a column is, as the beginning of its full name: a changelog has each a second time, for the old row."""
    is_changelog = any(field.name == changelog.BEFORE and field.is_struct for field in table.fields())
    return ("", f"{changelog.BEFORE}.") if is_changelog else ("",)


def _floating(table: IcebergTable, change: SchemaChange) -> set[str]:
    """Columns, by their names afterwards, that Iceberg does not take as identifiers."""
    kept = {change.renamed.get(column.name, column.name): column.type for column in table.fields()}
    types = {**kept, **{name: type_.iceberg for name, type_ in change.widened.items()}}
    types |= {column.name: column.type.iceberg for column in change.added}
    return {name for name, type_ in types.items() if type_ in _NO_IDENTIFIERS}


def literal(jvm: Java, column: AddedColumn) -> Java:
    try:
        value = _value(column.default or "", column.type)
    except (ValueError, ArithmeticError) as err:
        raise CopyNeeded(f"the default of column {column.name!r} is none that its Iceberg column can hold") from err
    literals = jvm.org.apache.iceberg.expressions.Literal
    if isinstance(value, Decimal):
        return literals.of(jvm.java.math.BigDecimal(str(value)))
    if isinstance(value, bytes):
        return literals.of(jvm.java.nio.ByteBuffer.wrap(value))
    return literals.of(value).to(iceberg_type(jvm, column.type))


def _value(text: str, type_: TargetType) -> str | bool | int | float | Decimal | bytes:
    """PostgreSQL's text as a value that Py4J and Iceberg take."""
    match type_.kind:
        case Kind.BOOLEAN:
            return text == "t"
        case Kind.INT | Kind.LONG:
            return int(text)
        case Kind.FLOAT | Kind.DOUBLE:
            return _finite(float(text))
        case Kind.DECIMAL:
            return _exact(Decimal(text), type_)
        case Kind.DATE:
            return date.fromisoformat(text).isoformat()
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return datetime.fromisoformat(text).isoformat()
        case Kind.LIST | Kind.VARIANT:
            raise ValueError(f"Iceberg has no default of type {type_.iceberg}")
        case Kind.BINARY:
            return bytes.fromhex(text.removeprefix("\\x"))
    return text


def _finite(value: float) -> float:
    """Iceberg writes any default to the table's metadata, but can read only numbers there."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number")
    return value


def _exact(value: Decimal, type_: TargetType) -> Decimal:
    """With as many digits after the point as the type has. Raises ValueError if it does not fit."""
    if not value.is_finite() or value.adjusted() >= type_.precision - type_.scale:
        raise ValueError(f"{value} has too many digits")
    exact = value.quantize(Decimal(1).scaleb(-type_.scale))
    if exact != value:
        raise ValueError(f"{value} has too many digits after the point")
    return exact


def _failure(table: IcebergTable, err: JavaError) -> LakeError:
    message = f"{table.key}: its columns can't be changed: {error_message(err)}"
    if "CommitFailedException" in error_classes(err):
        return PublishRefused(message)
    return LakeError(message) if is_final(err) else LakeUnavailable(message)
