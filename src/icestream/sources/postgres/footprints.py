"""Where the rows of tables lie, read from the source's catalog; and what only rows can tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from psycopg import sql
from psycopg.rows import dict_row

from icestream.errors import SourceUnavailable
from icestream.model.footprint import ColumnTrace, Footprint, Part, Question, Suspicion
from icestream.sources.postgres.connection import Connection, querying
from icestream.sources.postgres.ddl_trigger import Rewrites, find_trigger, read_rewrites

_AT_ONE_MOMENT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_HORIZON: Final = "SELECT mod(pg_snapshot_xmin(pg_current_snapshot())::text::numeric, 4294967296)::text"
# Of every type that a column's type is made of, however deep: arrays, domains, composite types and ranges.
_LABELS: Final = """
WITH RECURSIVE used AS (
    SELECT attrelid AS root, atttypid AS type
      FROM pg_attribute
     WHERE attrelid = ANY (%s) AND attnum > 0 AND NOT attisdropped
    UNION
    SELECT used.root, part.type
      FROM used
      JOIN pg_type t ON t.oid = used.type
     CROSS JOIN LATERAL (
           SELECT t.typelem WHERE t.typelem <> 0
           UNION ALL
           SELECT t.typbasetype WHERE t.typbasetype <> 0
           UNION ALL
           SELECT atttypid FROM pg_attribute WHERE attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped
           UNION ALL
           SELECT rngsubtype FROM pg_range WHERE t.oid IN (rngtypid, rngmultitypid)
           ) AS part (type)
)
SELECT used.root::bigint, e.oid::bigint, e.enumlabel
  FROM used
  JOIN pg_enum e ON e.enumtypid = used.type
 UNION ALL
SELECT used.root::bigint, -t.oid::bigint, string_agg(a.attnum || ' ' || a.atttypid, ', ' ORDER BY a.attnum)
  FROM used
  JOIN pg_type t ON t.oid = used.type AND t.typtype = 'c'
  JOIN pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
 GROUP BY used.root, t.oid
"""
_NAME: Final = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s
"""
_SIZE: Final = "SELECT pg_relation_size(%s::oid::regclass)"
_OLDER: Final = "SELECT EXISTS (SELECT FROM ONLY {} WHERE age(xmin) > age({}::xid))"
_OWN: Final = "SELECT EXISTS (SELECT FROM ONLY {} WHERE xmin = {}::xid)"


def read_footprints(conn: Connection, oids: Iterable[int]) -> dict[int, Footprint]:
    """By the oid of the table. One that is gone by now is left out."""
    wanted = list(oids)
    with querying(), conn.transaction():
        conn.execute(_AT_ONE_MOMENT)
        ((horizon,),) = conn.execute(_HORIZON).fetchall()
        trigger = find_trigger(conn)
        labels = _labels(conn, wanted)
        parts = _parts(conn, wanted, read_rewrites(conn) if trigger else {})
    return {oid: Footprint(tuple(found), horizon, labels[oid], trigger) for oid, found in parts.items()}


def _parts(conn: Connection, oids: list[int], noted: Mapping[int, Rewrites]) -> dict[int, list[Part]]:
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(_query(), (oids,)).fetchall()
    parts = defaultdict[int, list[Part]](list)
    for row in rows:
        root, columns, rewrites = row.pop("root"), row.pop("columns"), noted.get(row["oid"], Rewrites())
        traces = {int(number): ColumnTrace(*trace) for number, trace in columns.items()}
        found = Part(**row, columns=traces, rewrites=rewrites.all, expressions=rewrites.with_expression)
        parts[root].append(found)
    return parts


def _labels(conn: Connection, oids: list[int]) -> dict[int, dict[int, str]]:
    labels = defaultdict[int, dict[int, str]](dict)
    for oid, value, label in conn.execute(_LABELS, (oids,)).fetchall():
        labels[oid][value] = label
    return labels


def is_confirmed(conn: Connection, suspicion: Suspicion) -> bool:
    """Asks the rows where the catalog can't tell. A partition that is gone by now confirms anything."""
    if suspicion.question is None:
        return True
    with querying():
        found = conn.execute(_NAME, (suspicion.oid,)).fetchone()
        if found is None:
            return True
        if suspicion.question is Question.HOLDS_ANY:
            return bool(conn.execute(_SIZE, (suspicion.oid,)).fetchone() != (0,))
        is_older = suspicion.question is Question.HOLDS_OLDER
        query = sql.SQL(_OLDER if is_older else _OWN)
        row = conn.execute(query.format(sql.Identifier(*found), sql.Literal(suspicion.xid))).fetchone()
    if row is None:
        raise SourceUnavailable(f"the source does not tell of the rows of {'.'.join(found)}")
    return bool(row[0]) is not is_older


@cache
def _query() -> bytes:
    return files("icestream.sources.postgres").joinpath("footprints.sql").read_bytes()
