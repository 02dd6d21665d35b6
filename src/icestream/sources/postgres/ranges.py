"""Ranges of pages of a table, read at an exported snapshot through ADBC: binary COPY into Arrow.

Nobody holds a lock on the table between two ranges, so whoever reads one first makes sure that it is still what the
snapshot saw: SQL sees the catalog as of the snapshot, the server's functions see it as it is now.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import psycopg
import pyarrow as pa
from psycopg import sql

from icestream.errors import CopySnapshotGone, SourceForbidden, SourceReshaped, SourceUnavailable
from icestream.model.copying import CopyRange
from icestream.sources.postgres.connection import Connection, connect, querying, without_timeouts

_BEGIN: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_TIMEOUTS: Final = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
# Not on every version; and no query may come before the snapshot is set.
_LIFT_TIMEOUT: Final = "SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout'"
_BATCH_SIZE: Final = "adbc.postgresql.batch_size_hint_bytes"

# The relations that hold the rows: the table itself, or the leaves below a partitioned one. Children of a plain table
# are tables of their own.
_PARTS: Final = """
WITH RECURSIVE part AS (
    SELECT oid, relkind FROM pg_class WHERE oid = %(oid)s
    UNION ALL
    SELECT child.oid, child.relkind
      FROM part
      JOIN pg_inherits ON inhparent = part.oid
      JOIN pg_class child ON child.oid = inhrelid
     WHERE part.relkind = 'p'
)
SELECT oid::bigint, coalesce(pg_relation_size(oid), 0) / current_setting('block_size')::int
  FROM part
 WHERE relkind <> 'p'
 ORDER BY oid
"""
_NAME: Final = "SELECT (pg_identify_object('pg_class'::regclass, {oid}, 0)).identity"
# The name still leads to the relation, nobody rewrote or truncated it, and its columns have kept their names.
_UNCHANGED: Final = """
SELECT c.oid = to_regclass({name})
       AND c.relfilenode = pg_relation_filenode(c.oid)
       AND NOT EXISTS (
           SELECT FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
              AND (pg_identify_object_as_address('pg_class'::regclass, c.oid, a.attnum)).object_names[3]
                  IS DISTINCT FROM a.attname)
  FROM pg_class c
 WHERE c.oid = {oid}
"""
_FORBIDDEN: Final = "42501"  # a privilege is missing, or a policy would hide rows
_SNAPSHOT_GONE: Final = {"22023", "42704", "55000"}  # what SET TRANSACTION SNAPSHOT says when its exporter has ended
# An undefined table, column, schema, type, function or operator; a type that is another one now.
_RESHAPED: Final = {"42P01", "42703", "3F000", "42704", "42883", "42804", "42846", "22P02"}


def plan_ranges(connection: Connection, oid: int, *, pages: int) -> list[CopyRange]:
    """Ranges of about `pages` pages, from the real size of the relations; statistics may be old, or missing."""
    with querying():
        parts = connection.execute(_PARTS, {"oid": oid}).fetchall()
    cuts = [(part, size, start) for part, size in parts for start in range(0, max(size, 1), pages)]
    return [
        CopyRange(number, part, start, start + pages if start + pages < size else None, min(pages, size - start))
        for number, (part, size, start) in enumerate(cuts)
    ]


@contextmanager
def at_snapshot(conninfo: str, snapshot: str) -> Iterator[Connection]:
    """An ordinary connection in a transaction that sees what the snapshot saw. Raises CopySnapshotGone."""
    with connect(conninfo) as connection:
        without_timeouts(connection)
        with querying(), connection.transaction():
            connection.execute(_BEGIN)
            try:
                connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
            except psycopg.Error as err:
                if err.sqlstate in _SNAPSHOT_GONE:
                    raise _gone(snapshot) from err
                raise
            yield connection


class RangeReader:
    """One connection of a task, in a transaction at the snapshot.

    Methods raise SourceReshaped when the relation is no longer what the snapshot saw, SourceForbidden when it may not
    be read, SourceUnavailable otherwise.
    """

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def lock(self, oid: int) -> str:
        """The relation's name now, quoted: it may be another one than in the snapshot. Everything else is the same.

        Stays so until the end of the transaction: what rewrites the relation or alters it waits that long.
        """
        name = self._value(_NAME.format(oid=oid))
        if name is None:
            raise SourceReshaped(f"relation {oid} was dropped since the snapshot of its copy")
        with _translated():
            self._cursor.execute(f"LOCK TABLE ONLY {name} IN ACCESS SHARE MODE")
        if self._value(_UNCHANGED.format(oid=oid, name=sql.Literal(name).as_string())) is not True:
            raise SourceReshaped(f"{name} was rewritten, truncated or altered since the snapshot of its copy")
        return str(name)

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        with _translated():
            self._cursor.execute(query)
            yield from self._cursor.fetch_record_batch()

    def _value(self, query: str) -> object:
        with _translated():
            self._cursor.execute(query)
            row = self._cursor.fetchone()
        return row[0] if row else None


@contextmanager
def reading(conninfo: str, snapshot: str, *, batch_size: int | None = None) -> Iterator[RangeReader]:
    """Raises CopySnapshotGone when nobody holds the snapshot open any more."""
    from adbc_driver_postgresql import dbapi

    options = {} if batch_size is None else {_BATCH_SIZE: str(batch_size)}
    with _connected(dbapi, conninfo) as connection, connection.cursor(adbc_stmt_kwargs=options) as cursor:
        _begin(cursor, snapshot)
        yield RangeReader(cursor)


@contextmanager
def _connected(dbapi: Any, conninfo: str) -> Iterator[Any]:
    with _translated():
        connection = dbapi.connect(conninfo)
    try:
        yield connection
    finally:
        connection.close()


def _begin(cursor: Any, snapshot: str) -> None:
    import adbc_driver_manager

    with _translated():
        cursor.execute(_BEGIN)
        for timeout in _TIMEOUTS:
            cursor.execute(f"SET LOCAL {timeout} = 0")
    try:
        cursor.execute(f"SET TRANSACTION SNAPSHOT {sql.Literal(snapshot).as_string()}")
    except adbc_driver_manager.Error as err:
        if err.sqlstate in _SNAPSHOT_GONE:
            raise _gone(snapshot) from err
        _fail(err)
    with _translated():
        cursor.execute(_LIFT_TIMEOUT)
        cursor.fetchall()


@contextmanager
def _translated() -> Iterator[None]:
    import adbc_driver_manager

    try:
        yield
    except adbc_driver_manager.Error as err:
        _fail(err)


def _fail(err: Any) -> NoReturn:
    # Not its text: that may quote values of rows.
    if err.sqlstate in _RESHAPED:
        raise SourceReshaped(f"a table was altered since the snapshot of its copy (SQLSTATE {err.sqlstate})") from err
    if err.sqlstate == _FORBIDDEN:
        raise SourceForbidden("the source table may not be read, or not whole (row-level security)") from err
    raise SourceUnavailable(f"reading the source table failed (SQLSTATE {err.sqlstate or 'none'})") from err


def _gone(snapshot: str) -> CopySnapshotGone:
    return CopySnapshotGone(f"the snapshot {snapshot} of the first copy is gone")
