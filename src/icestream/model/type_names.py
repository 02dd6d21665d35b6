"""PostgreSQL's types as people write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_TEXTS: Final = frozenset((18, 19, 25, 1042, 1043))  # "char", name, text, bpchar, varchar: all are text in Iceberg

OIDS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("bool", "boolean"), 16),
    **dict.fromkeys(("int2", "smallint"), 21),
    **dict.fromkeys(("int4", "integer", "int", "serial"), 23),
    **dict.fromkeys(("int8", "bigint", "bigserial"), 20),
    **dict.fromkeys(("float4", "real"), 700),
    **dict.fromkeys(("float8", "double precision", "double"), 701),
    **dict.fromkeys(("numeric", "decimal"), 1700),
    "text": 25,
    **dict.fromkeys(("varchar", "character varying"), 1043),
    **dict.fromkeys(("bpchar", "char", "character"), 1042),
    "name": 19,
    "bytea": 17,
    "date": 1082,
    **dict.fromkeys(("time", "time without time zone"), 1083),
    **dict.fromkeys(("timetz", "time with time zone"), 1266),
    **dict.fromkeys(("timestamp", "timestamp without time zone"), 1114),
    **dict.fromkeys(("timestamptz", "timestamp with time zone"), 1184),
    "uuid": 2950,
    "json": 114,
    "jsonb": 3802,
    "oid": 26,
}


def means(name: str, oid: int) -> bool:
    """Whether a type may be called so. Which kind of text it is makes no difference."""
    return OIDS[name] == oid or {OIDS[name], oid} <= _TEXTS
