"""Columns that a table gets together with its next rows: until then readers see the ones that fit the rows there are.

They are kept as one more schema in the table's metadata that is not the current one. So their ids are taken for good,
and whoever goes on after a crash finds them again.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from icestream.errors import LakeUnavailable, PublishRefused
from icestream.lake.evolution import SchemaChange, planned_schema
from icestream.lake.java import JAVA_ERRORS, Java, error_classes, error_message, string_map
from icestream.lake.table import IcebergTable

NEXT_COLUMNS = "icestream.next-columns"


class _Reservation(msgspec.Struct, frozen=True):
    purpose: str
    schema_id: int
    instead_of: int


@dataclass(frozen=True)
class NextColumns:
    schema_id: int
    instead_of: int  # the schema that is current until then; with another one, they no longer fit
    is_new: bool  # False: they were reserved before, and files may have been written for them

    def schema(self, table: IcebergTable) -> Java:
        return table.metadata().schemasById()[self.schema_id]


def reserve(table: IcebergTable, change: SchemaChange, purpose: str) -> NextColumns:
    """Keeps the columns that the change makes for `purpose`; may be repeated, and gives the same then.

    Raises PublishRefused if the table moved meanwhile, LakeUnavailable when the catalog takes no commits now.
    """
    wanted = planned_schema(table, change)
    found = _found(table, wanted, purpose)
    if found is not None:
        return NextColumns(found.schema_id, found.instead_of, is_new=False)
    base = table.metadata()
    added = table.jvm.org.apache.iceberg.TableMetadata.buildFrom(base).addSchema(wanted).build()
    schema_id = max(schema.schemaId() for schema in added.schemas() if schema.sameSchema(wanted))
    note = _Reservation(purpose, schema_id, base.currentSchemaId())
    properties = string_map(table.jvm, {NEXT_COLUMNS: msgspec.json.encode(note).decode()})
    try:
        builder = table.jvm.org.apache.iceberg.TableMetadata.buildFrom(added)
        table.java.operations().commit(base, builder.setProperties(properties).build())
    except JAVA_ERRORS as err:
        message = f"{table.key}: its next columns can't be noted: {error_message(err)}"
        raise (PublishRefused if "CommitFailedException" in error_classes(err) else LakeUnavailable)(message) from err
    table.refresh()
    return NextColumns(schema_id, note.instead_of, is_new=True)


def _found(table: IcebergTable, wanted: Java, purpose: str) -> _Reservation | None:
    """What is reserved for this purpose already, if it still is what is wanted, but for the ids."""
    text = table.properties().get(NEXT_COLUMNS)
    note = None if text is None else msgspec.json.decode(text, type=_Reservation)
    metadata = table.metadata()
    if note is None or note.purpose != purpose or note.instead_of != metadata.currentSchemaId():
        return None
    schema = metadata.schemasById().get(note.schema_id)
    kept = None if schema is None else _described(table, schema)
    return note if kept == _described(table, wanted) else None


def _described(table: IcebergTable, schema: Java) -> list[tuple[str, str, bool]]:
    return [(field.name, field.type, field.required) for field in table.fields(schema)]
