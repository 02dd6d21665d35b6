"""The one table of types: what a PostgreSQL type becomes in Iceberg. Both roads, copy and stream, use it."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icestream.model.type_rules import TypeRules

if TYPE_CHECKING:
    from icestream.model.table import Column

MAX_DECIMAL_DIGITS = 38
NUMERIC_OID: Final = 1700
FLOAT4_OID: Final = 700
_UUID_OID: Final = 2950
_JSON_OIDS: Final = (114, 3802)  # json, jsonb
_UNCONSTRAINED: Final = (38, 18)


class Kind(enum.StrEnum):
    """How the text of a value is read."""

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    BINARY = "binary"
    STRING = "string"
    UUID = "uuid"
    VARIANT = "variant"
    LIST = "list"


@dataclass(frozen=True)
class TargetType:
    kind: Kind
    precision: int = 0
    scale: int = 0
    element: TargetType | None = None  # of a list

    @property
    def iceberg(self) -> str:
        """Iceberg's name of the type, without spaces."""
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.precision},{self.scale})"
        return self.kind.value if self.element is None else f"list<{self.element.iceberg}>"

    @property
    def spark(self) -> str:
        names = {
            Kind.LONG: "bigint",
            Kind.TIMESTAMP: "timestamp_ntz",
            Kind.TIMESTAMPTZ: "timestamp",
            Kind.UUID: "string",
        }
        return names.get(self.kind, self.iceberg) if self.element is None else f"array<{self.element.spark}>"

    @property
    def can_be_identifier(self) -> bool:
        return self.kind not in (Kind.FLOAT, Kind.DOUBLE)

    @property
    def can_be_unfit(self) -> bool:
        """Whether PostgreSQL has values of the type that Iceberg's can't hold."""
        return self.kind in _MAY_NOT_HOLD

    @property
    def has_ordered_bounds(self) -> bool:
        """Whether Iceberg's file bounds order values as the source does, so that a key range may prune files."""
        return self.kind in (Kind.INT, Kind.LONG, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.STRING)


STRING = TargetType(Kind.STRING)

_MAY_NOT_HOLD: Final = frozenset((Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.VARIANT, Kind.LIST))
_BY_OID: Final = {
    16: Kind.BOOLEAN,
    17: Kind.BINARY,  # bytea
    20: Kind.LONG,  # int8
    21: Kind.INT,  # int2
    23: Kind.INT,  # int4
    26: Kind.LONG,  # oid: four bytes without a sign
    700: Kind.FLOAT,
    701: Kind.DOUBLE,
    1082: Kind.DATE,
    1114: Kind.TIMESTAMP,
    1184: Kind.TIMESTAMPTZ,
}


def target_type(column: Column, rules: TypeRules, *, is_key: bool = False) -> TargetType:
    """The Iceberg type of a column. Whatever is not in the table is carried as text, so no type stops the stream.

    A key is compared: where two lists or documents can't be told apart by what they hold, their texts can.
    """
    if column.element_oid:
        as_text = is_key or rules.arrays == "string"
        return STRING if as_text else TargetType(Kind.LIST, element=_element(column, rules))
    if column.base_oid in _JSON_OIDS or column.type_oid in _JSON_OIDS:
        return STRING if is_key or rules.json == "string" else TargetType(Kind.VARIANT)
    return _scalar(column.base_oid or column.type_oid, effective_typmod(column), rules)


def target_type_of(iceberg: str) -> TargetType | None:
    """The type that Iceberg calls so; None for one that we never make."""
    if found := re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", iceberg):
        return TargetType(Kind.DECIMAL, int(found[1]), int(found[2]))
    if found := re.fullmatch(r"list<(.*)>", iceberg):
        element = target_type_of(found[1])
        return None if element is None else TargetType(Kind.LIST, element=element)
    return TargetType(Kind(iceberg)) if iceberg in set(Kind) - {Kind.DECIMAL, Kind.LIST} else None


def effective_typmod(column: Column) -> int:
    """A domain has its modifier in the catalog, an array that of its elements."""
    return column.typmod if column.typmod != -1 else column.base_typmod


def _element(column: Column, rules: TypeRules) -> TargetType:
    return _scalar(column.element_oid, effective_typmod(column), rules)


def _scalar(oid: int, typmod: int, rules: TypeRules) -> TargetType:
    if oid == NUMERIC_OID:
        return _decimal(typmod, rules)
    if oid == _UUID_OID and rules.uuid == "uuid":
        return TargetType(Kind.UUID)
    return TargetType(_BY_OID.get(oid, Kind.STRING))


def _decimal(typmod: int, rules: TypeRules) -> TargetType:
    if typmod < 4:
        return STRING if rules.numeric == "string" else TargetType(Kind.DECIMAL, *_UNCONSTRAINED)
    packed = typmod - 4
    precision = (packed >> 16) & 0xFFFF
    scale = ((packed & 0x7FF) ^ 0x400) - 0x400  # eleven bits, signed since PostgreSQL 15
    if scale < 0:
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    if precision > MAX_DECIMAL_DIGITS:
        return STRING
    return TargetType(Kind.DECIMAL, precision, scale)
