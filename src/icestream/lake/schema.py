"""Iceberg schemas, partition specs and sort orders, built with the Java API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from icestream.config.partition import PartitionField, SortField, Transform
from icestream.errors import LakeError
from icestream.lake.java import Java
from icestream.model import changelog
from icestream.model.columns import LakeColumn
from icestream.model.types import Kind, TargetType


def iceberg_schema(jvm: Java, columns: Sequence[LakeColumn], *, is_changelog: bool = False) -> Java:
    """Keys are required and, where Iceberg allows it, identifier fields; everything else may be NULL.

    `is_changelog`: the columns of a changelog come first, among them a struct with the same columns for the old row.
    """
    types, ids = jvm.org.apache.iceberg.types.Types, count(1)
    fields, identifiers = jvm.java.util.ArrayList(), jvm.java.util.HashSet()
    if is_changelog:
        before = types.StructType.of(_fields(jvm, columns, ids))
        fields.addAll(_fields(jvm, changelog.COLUMNS, ids))
        fields.add(types.NestedField.optional(next(ids), changelog.BEFORE, before))
    own = _fields(jvm, columns, ids)
    fields.addAll(own)
    if all(column.type.can_be_identifier for column in columns if column.is_key):
        for field in own:
            if field.isRequired():
                identifiers.add(field.fieldId())
    return jvm.org.apache.iceberg.Schema(fields, identifiers)


def _fields(jvm: Java, columns: Sequence[LakeColumn], ids: Iterator[int]) -> Java:
    """The ids only tell the fields of one new schema apart; Iceberg gives them ids of its own."""
    types, fields = jvm.org.apache.iceberg.types.Types, jvm.java.util.ArrayList()
    for column in columns:
        make = types.NestedField.required if column.is_key else types.NestedField.optional
        fields.add(make(next(ids), column.name, iceberg_type(jvm, column.type, element_id=next(ids))))
    return fields


def iceberg_type(jvm: Java, type_: TargetType, *, element_id: int = 0) -> Java:
    """`element_id` only tells a list's elements apart within one new schema; Iceberg gives them ids of its own."""
    types = jvm.org.apache.iceberg.types.Types
    if type_.element is not None:
        return types.ListType.ofOptional(element_id, iceberg_type(jvm, type_.element))
    if type_.kind is Kind.VARIANT:
        return types.VariantType.get()
    return types.fromPrimitiveString(type_.iceberg)


def partition_spec(jvm: Java, schema: Java, expressions: Sequence[str]) -> Java:
    builder = jvm.org.apache.iceberg.PartitionSpec.builderFor(schema).caseSensitive(True)
    for field in map(partition_field, expressions):
        if field.param is not None:
            getattr(builder, field.transform)(field.column, field.param, field.field_name)
        else:
            getattr(builder, field.transform)(field.column)
    return builder.build()


def partition_field(expression: str) -> PartitionField:
    try:
        return PartitionField.parse(expression)
    except ValueError as err:
        raise LakeError(f"{expression!r} {err}") from err


def term(jvm: Java, field: PartitionField) -> Java:
    """A column, or what a transform makes of it, as updates of specs and sort orders take it."""
    expressions = jvm.org.apache.iceberg.expressions.Expressions
    if field.transform is Transform.IDENTITY:
        return expressions.ref(field.column)
    arguments = [] if field.param is None else [field.param]
    return getattr(expressions, field.transform)(field.column, *arguments)


def add_sort_fields(jvm: Java, order: Java, expressions: Sequence[str]) -> None:
    """`order`: a builder, or a replacement, of a sort order."""
    nulls = jvm.org.apache.iceberg.NullOrder
    for field in map(SortField.parse, expressions):
        add = order.desc if field.descending else order.asc
        add(term(jvm, field.field), nulls.NULLS_FIRST if field.nulls_first else nulls.NULLS_LAST)
