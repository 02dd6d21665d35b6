"""A transaction that keeps the snapshot of first copies alive. It locks no table: who reads one looks after himself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import sql

from icestream.errors import SourceUnavailable
from icestream.model.position import Lsn
from icestream.sources.postgres.connection import Connection, connect, querying, without_timeouts
from icestream.sources.postgres.slot import CreatedSlot

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@dataclass(frozen=True)
class HeldSnapshot:
    """Exported under `name` as long as the connection is in its transaction."""

    name: str
    position: Lsn
    conn: Connection

    @classmethod
    def of(cls, source: str, created: CreatedSlot) -> HeldSnapshot:
        """Imports the new slot's snapshot and exports it again; then the slot's connection is free."""
        conn = connect(source)
        try:
            without_timeouts(conn)
            with querying():
                conn.execute(_BEGIN)
                conn.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(created.snapshot)))
                row = conn.execute("SELECT pg_export_snapshot()").fetchone()
        except BaseException:
            conn.close()
            raise
        if row is None:
            raise SourceUnavailable("the source did not export the snapshot of a first copy")
        return cls(str(row[0]), created.position, conn)

    def is_alive(self) -> bool:
        try:
            self.conn.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def release(self) -> None:
        self.conn.close()


def names_of(some: Iterable[HeldSnapshot]) -> frozenset[str]:
    return frozenset(held.name for held in some)
