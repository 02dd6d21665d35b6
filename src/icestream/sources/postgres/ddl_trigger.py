"""Event triggers in the source that tell of changes of shape, for certainty where the stream and the catalog leave
doubt: which column is which, and whether an expression made the values of a rewritten table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec
import psycopg

from icestream.errors import ProtocolError, SourceError
from icestream.sources.postgres.connection import Connection, querying

SCHEMA: Final = "icestream_ddl"
PREFIX: Final = "icestream"  # of its messages

_TRIGGERS: Final = ("icestream_ddl_columns", "icestream_ddl_drops", "icestream_ddl_rewrites")
_FOUND: Final = (
    "SELECT oid::text FROM pg_event_trigger WHERE evtname = ANY (%s) AND evtenabled IN ('O', 'A') ORDER BY 1"
)
_REMOVE: Final = (
    *(f"DROP EVENT TRIGGER IF EXISTS {name}" for name in _TRIGGERS),
    f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE",
)
_REWRITES: Final = "SELECT relation::bigint, count(*), count(*) FILTER (WHERE NOT is_plain) FROM {} GROUP BY relation"
_LET_A_SUPERUSER: Final = (
    "let a superuser (rds_superuser, cloudsqlsuperuser, …) of this database run what `icestream ddl-trigger {}` prints"
)


class Told(msgspec.Struct, frozen=True):
    """One message of the triggers: the numbers of a table's columns by name. Without a table, something was dropped."""

    oid: int = 0
    numbers: Mapping[str, int] = {}


@dataclass(frozen=True)
class Rewrites:
    """How often a relation was rewritten since the triggers are there, and how often not just by another type."""

    all: int = 0
    with_expression: int = 0


def creation_text() -> str:
    return _creation()


def removal_text() -> str:
    return "".join(f"{statement};\n" for statement in _REMOVE)


def install(conn: Connection) -> None:
    """May be repeated. Raises SourceError with the way out if the role may not."""
    _run(conn, creation_text(), "print")


def remove(conn: Connection) -> None:
    """May be repeated."""
    _run(conn, removal_text(), "print --remove")


def find_trigger(conn: Connection) -> str | None:
    """Names this installation; None if there is none, or not a whole one that is enabled."""
    with querying():
        found = [oid for (oid,) in conn.execute(_FOUND, (list(_TRIGGERS),)).fetchall()]
    return " ".join(found) if len(found) == len(_TRIGGERS) else None


def read_rewrites(conn: Connection) -> dict[int, Rewrites]:
    """By relation. Only for a source that has the triggers."""
    with querying():
        rows = conn.execute(_REWRITES.format(f"{SCHEMA}.rewrite").encode()).fetchall()
    return {oid: Rewrites(*counts) for oid, *counts in rows}


def parse_message(content: bytes) -> Told:
    try:
        return msgspec.json.decode(content, type=Told)
    except msgspec.MsgspecError as err:
        raise ProtocolError(f"a message of the DDL triggers is not what they write: {err}") from err


def _run(conn: Connection, text: str, command: str) -> None:
    try:
        with conn.transaction():
            conn.execute(text.encode())
    except psycopg.errors.InsufficientPrivilege as err:
        raise SourceError(
            f"user {conn.info.user} may not do that: {err.diag.message_primary}",
            hint=_LET_A_SUPERUSER.format(command),
        ) from err


@cache
def _creation() -> str:
    return files("icestream.sources.postgres").joinpath("ddl_trigger.sql").read_text(encoding="utf-8")
