"""Each column of the first copy as a SQL expression: its value as Iceberg holds it, or NULL where that can't.

The rules for what fits are those that `materialize.values` has for the stream. Odd types come as the text that the
stream would send, decimals as text, since Arrow reads them exactly from it.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from psycopg import sql

from icestream.model.columns import LakeColumn
from icestream.model.table import Column
from icestream.model.types import Kind, TargetType, effective_typmod

_TEXT_OIDS: Final = (25, 1043)  # text, varchar: their binary form is their text
_ARROW_TYPES: Final = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.BINARY: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
}
_SQL_TYPES: Final = {
    Kind.BOOLEAN: "bool",
    Kind.INT: "int4",
    Kind.LONG: "int8",
    Kind.FLOAT: "float4",
    Kind.DOUBLE: "float8",
    Kind.BINARY: "bytea",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMPTZ: "timestamptz",
    Kind.STRING: "text",
}
_TIMES: Final = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)

# Four-digit years of our era; infinity is in neither half.
_FITTING_TIME: Final = "({0} >= '0001-01-01' AND {0} < '10000-01-01')"
_FITTING_NUMERIC: Final = "({0} <> 'NaN')"  # of a declared precision: nothing else can be in the column
_FITTING_DECIMAL: Final = "(abs({0}) < 1e{1} AND scale(trim_scale({0})) <= {2})"
_FITTING_JSON: Final = (
    """(regexp_replace({0}::text, '"([^"\\\\]|\\\\.)*"', '', 'g') !~ '([0-9]\\.?){{39}}|[eE][+-]?[0-9]{{3}}')"""
)
_FLAT: Final = "(cardinality({0}) = 0 OR (array_ndims({0}) = 1 AND array_lower({0}, 1) = 1))"
_FITTING_ELEMENTS: Final = "NOT EXISTS (SELECT FROM generate_subscripts({0}, 1) AS {1} WHERE NOT {2})"
_ELEMENTS: Final = "ARRAY(SELECT {2} FROM generate_subscripts({0}, 1) AS {1})"
_SUBSCRIPT: Final = sql.Identifier("icestream subscript")  # hides no column of the table
# The output function's text, as the stream has it; `::text` differs for inet and char(n), `format` hides NULL.
# IS NOT NULL would ask for the fields of a composite value.
_AS_TEXT: Final = "CASE WHEN {0} IS DISTINCT FROM NULL THEN format('%s', {0}) END"


def arrow_type(type_: TargetType) -> pa.DataType:
    if type_.element is not None:
        return pa.list_(pa.field("element", arrow_type(type_.element)))
    if type_.kind is Kind.DECIMAL:
        return pa.decimal128(type_.precision, type_.scale)
    return _ARROW_TYPES.get(type_.kind, pa.string())


def column_value(column: LakeColumn) -> sql.Composed:
    name, fits = _source_name(column), column_fits(column)
    if fits is None:
        return _value(name, column)
    if column.text_of is not None:
        return sql.SQL("CASE WHEN NOT {} THEN {} END").format(fits, as_text(name))
    return sql.SQL("CASE WHEN {} THEN {} END").format(fits, _value(name, column))


def column_fits(column: LakeColumn) -> sql.Composed | None:
    """The condition under which the Iceberg column (or the one it is a companion of) can hold the value.

    None where it always can.
    """
    name, type_ = _source_name(column), (column.text_of or column).type
    if type_.element is None:
        return _scalar_fits(name, type_, _source(column))
    flat = sql.SQL(_FLAT).format(name)
    fits = _scalar_fits(_element(name), type_.element, _source(column))
    if fits is None:
        return flat
    return sql.SQL("({} AND {})").format(flat, sql.SQL(_FITTING_ELEMENTS).format(name, _SUBSCRIPT, fits))


def as_text(operand: sql.Composable) -> sql.Composed:
    return sql.SQL(_AS_TEXT).format(operand)


def _value(name: sql.Identifier, column: LakeColumn) -> sql.Composed:
    element, source = column.type.element, _source(column)
    typmod = effective_typmod(source)
    if element is None:
        return _scalar_value(name, column.type, source.base_oid or source.type_oid, typmod)
    if _is_read_as_it_is(element, source.element_oid):
        return sql.SQL("{}::{}[]").format(name, sql.SQL(_SQL_TYPES[element.kind]))
    value = _scalar_value(_element(name), element, source.element_oid, typmod)
    return sql.SQL(_ELEMENTS).format(name, _SUBSCRIPT, value)


def _scalar_value(operand: sql.Composable, type_: TargetType, oid: int, typmod: int) -> sql.Composed:
    if type_.kind is Kind.DECIMAL:
        # More zeros after the point than the type has digits are no reason to refuse a value.
        return sql.SQL("{}::text" if typmod >= 0 else "trim_scale({})::text").format(operand)
    if _is_read_as_it_is(type_, oid):
        is_narrow = type_.kind in (Kind.INT, Kind.LONG)
        return sql.SQL(f"{{}}::{_SQL_TYPES[type_.kind]}" if is_narrow else "{}").format(operand)
    return as_text(operand)


def _scalar_fits(operand: sql.Composable, type_: TargetType, source: Column) -> sql.Composed | None:
    if type_.kind in _TIMES:
        return sql.SQL(_FITTING_TIME).format(operand)
    if type_.kind is Kind.VARIANT:
        return sql.SQL(_FITTING_JSON).format(operand)
    if type_.kind is not Kind.DECIMAL:
        return None
    if effective_typmod(source) >= 0:
        return sql.SQL(_FITTING_NUMERIC).format(operand)
    digits = sql.Literal(type_.precision - type_.scale)
    return sql.SQL(_FITTING_DECIMAL).format(operand, digits, sql.Literal(type_.scale))


def _is_read_as_it_is(type_: TargetType, oid: int) -> bool:
    return type_.kind in _ARROW_TYPES or (type_.kind is Kind.STRING and oid in _TEXT_OIDS)


def _element(name: sql.Identifier) -> sql.Composed:
    return sql.SQL("{}[{}]").format(name, _SUBSCRIPT)


def _source(column: LakeColumn) -> Column:
    if column.source is None:
        raise ValueError(f"column {column.name!r} has no source")
    return column.source


def _source_name(column: LakeColumn) -> sql.Identifier:
    return sql.Identifier(_source(column).name)
