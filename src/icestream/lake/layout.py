"""How the files of a table are laid out: partitions, sort order, write mode and properties, as the settings ask for it.

The table remembers the layout that it was given, so that only a change of the settings changes it, and what a person
did to the table stays. Files that are there are not touched: a new spec or order counts for what is written later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

import msgspec

from icestream.config.partition import PartitionField
from icestream.errors import LakeError, LakeUnavailable, PublishRefused
from icestream.lake.java import JAVA_ERRORS, Java, JavaError, error_classes, error_message, is_final
from icestream.lake.schema import add_sort_fields, partition_field, term
from icestream.lake.table import IcebergTable
from icestream.model.table import Target, WriteMode

LAYOUT = "icestream.layout"


class Layout(msgspec.Struct, frozen=True):
    write_mode: WriteMode = WriteMode.MERGE
    partition: tuple[str, ...] = ()
    sort_order: tuple[str, ...] = ()
    properties: Mapping[str, str] = {}

    @classmethod
    def of(cls, target: Target) -> Layout:
        return cls(WriteMode(target.write_mode), target.partition, target.sort_order, target.properties)

    def as_property(self) -> dict[str, str]:
        return {LAYOUT: msgspec.json.encode(self).decode()}

    def all_properties(self) -> dict[str, str]:
        """Of the table: those that make Spark write in this mode, and those of the settings."""
        mode = "copy-on-write" if self.write_mode == WriteMode.COPY_ON_WRITE else "merge-on-read"
        return {**{f"write.{operation}.mode": mode for operation in ("delete", "update", "merge")}, **self.properties}


def stored_layout(table: IcebergTable) -> Layout | None:
    text = table.properties().get(LAYOUT)
    return None if text is None else msgspec.json.decode(text, type=Layout)


def settle_layout(table: IcebergTable, wanted: Layout) -> bool:
    """Gives the table another layout, in one commit; False if it has this one. May be repeated.

    Raises PublishRefused if the table moved meanwhile, LakeError if Iceberg refuses it.
    """
    known, is_unfit = stored_layout(table), _lacks_global_spec(table, wanted)
    if known == wanted and not is_unfit:
        return False

    def lay_out(transaction: Java) -> None:
        if is_unfit:
            _partition(table, transaction, ())
        before = known or Layout()  # a table that somebody else made keeps what the settings do not speak of
        if is_unfit or before.partition != wanted.partition:
            _partition(table, transaction, wanted.partition)
        if before.sort_order != wanted.sort_order:
            _sort(table, transaction, wanted.sort_order)
        _set_properties(transaction, known, wanted)

    try:
        table.commit(lay_out)
    except JAVA_ERRORS as err:
        raise _failure(table, err) from err
    return True


def global_spec(table: IcebergTable) -> Java:
    """The spec without partitions, under which deletes by key count for all of them. None: there is none."""
    specs = [spec for spec in table.java.specs().values() if spec.isUnpartitioned()]
    return specs[0] if specs else None


def _lacks_global_spec(table: IcebergTable, wanted: Layout) -> bool:
    return wanted.write_mode == WriteMode.EQUALITY and global_spec(table) is None


def _partition(table: IcebergTable, transaction: Java, wanted: Sequence[str]) -> None:
    """Fields that are there and wanted stay as they are."""
    have = _fields(transaction.table(), [transaction.table().spec()])
    ever = _fields(transaction.table(), transaction.table().specs().values())
    fields = {str(field): field for field in map(partition_field, wanted)}
    gone = [name for name, expression in have.items() if expression not in fields]
    added = [field for expression, field in fields.items() if expression not in have.values()]
    if not gone and not added:
        return
    update = transaction.updateSpec().caseSensitive(True)
    for name in gone:
        update.removeField(name)
    for field in added:
        update.addField(_name_for(field, ever), term(table.jvm, field))
    update.commit()


def _fields(java: Java, specs: Iterable[Java]) -> dict[str, str]:
    """The fields of these specs: name and expression."""
    schema = java.schema()
    return {str(field.name()): _expression(schema, field) for spec in specs for field in spec.fields()}


def _name_for(field: PartitionField, ever: Mapping[str, str]) -> str:
    """A name means one field in all specs of a table: Spark can't merge into a table where it means two."""
    again = [name for name, expression in ever.items() if expression == str(field)]
    if again:
        return again[0]
    names = (f"{field.field_name}_{number}" for number in count(2))
    return field.field_name if field.field_name not in ever else next(name for name in names if name not in ever)


def _expression(schema: Java, field: Java) -> str:
    """A field of a spec as settings write it."""
    column, transform = str(schema.findColumnName(field.sourceId())), str(field.transform())
    return column if transform == "identity" else f"{transform}({column})"


def _sort(table: IcebergTable, transaction: Java, wanted: Sequence[str]) -> None:
    order = transaction.replaceSortOrder().caseSensitive(True)
    add_sort_fields(table.jvm, order, wanted)
    order.commit()


def _set_properties(transaction: Java, known: Layout | None, wanted: Layout) -> None:
    """What nobody asked for stays as it is, also what a person set by hand."""
    before = {} if known is None else known.all_properties()
    now, update = wanted.all_properties(), transaction.updateProperties()
    for name in before.keys() - now.keys():
        update.remove(name)
    for name, value in {**now, **wanted.as_property()}.items():
        if before.get(name) != value:
            update.set(name, value)
    update.commit()


def _failure(table: IcebergTable, err: JavaError) -> LakeError:
    message = f"{table.key}: it can't be laid out as the settings ask for: {error_message(err)}"
    if "CommitFailedException" in error_classes(err):
        return PublishRefused(message)
    hint = "correct `iceberg.partition` or `iceberg.sort_order` of the table"
    return LakeError(message, hint=hint) if is_final(err) else LakeUnavailable(message)
