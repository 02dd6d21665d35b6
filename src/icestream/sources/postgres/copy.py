"""What is asked for when a table is copied: the statement for a range of its pages, and the Arrow types that come."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from icestream.model.columns import LakeColumn, naming_columns
from icestream.model.letters import LONGEST_KEY_PART, LONGEST_VALUE
from icestream.sources.postgres.copied_values import arrow_type, as_text, column_fits, column_value


@dataclass(frozen=True)
class PageRange:
    """Pages of a relation under its present name."""

    relation: str  # quoted
    start: int
    end: int | None

    def condition(self) -> str:
        lower = f"ctid >= '({self.start},0)'::tid"
        return lower if self.end is None else f"{lower} AND ctid < '({self.end},0)'::tid"


def arrow_schema(columns: Sequence[LakeColumn]) -> pa.Schema:
    return pa.schema([(column.name, arrow_type(column.type)) for column in columns])


def range_query(columns: Sequence[LakeColumn], pages: PageRange) -> str:
    """The rows of a range; those whose key does not fit come too, with NULL in it, and are marked as unfit."""
    unfit = [_problem(column) for column in columns if column.leaves_letters]
    anything_unfit = sql.SQL(" OR ").join(unfit) if unfit else sql.SQL("false")
    listed = sql.SQL(", ").join([*map(column_value, columns), anything_unfit])
    return f"SELECT {listed.as_string()} FROM ONLY {pages.relation} WHERE {pages.condition()}"  # noqa: S608


def unfit_query(columns: Sequence[LakeColumn], column: LakeColumn, pages: PageRange, after: str, most: int) -> str:
    """Rows whose value of `column` does not fit: their places (ctid), keys (as JSON) and the texts of those values.

    In the order of places, beginning behind the place `after`. Values are looked at only when the rows are chosen.
    """
    keys = naming_columns(columns)
    names = sql.SQL(", ").join(map(sql.Identifier, dict.fromkeys([*(key.name for key in keys), column.name])))
    condition = f"{pages.condition()} AND ctid > '{after}'::tid AND {_problem(column).as_string()}"
    chosen = f"SELECT ctid, {names.as_string()} FROM ONLY {pages.relation} WHERE {condition} ORDER BY ctid LIMIT {most}"  # noqa: S608
    pairs = sql.SQL(", ").join(
        sql.SQL("{}, {}").format(sql.Literal(key.name), _beginning(key, LONGEST_KEY_PART)) for key in keys
    )
    listed = f"ctid::text, json_build_object({pairs.as_string()})::text"
    text = _beginning(column, LONGEST_VALUE).as_string()
    return f"SELECT {listed}, {text} FROM ({chosen}) AS chosen ORDER BY ctid"  # noqa: S608


def with_whole_keys(rows: pa.RecordBatch, keys: Collection[str]) -> pa.RecordBatch:
    """Without the rows that have no key to be matched by."""
    whole = pa.array([True] * rows.num_rows)
    for key in keys:
        whole = pc.and_(whole, pc.is_valid(rows.column(key)))
    return rows.filter(whole)


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Expressions have no names, decimals come as text, and a column of NULLs may have no type."""
    columns = batch.columns[: len(schema)]
    pairs = zip(columns, schema, strict=True)
    arrays = [array if array.type == field.type else array.cast(field.type) for array, field in pairs]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _beginning(column: LakeColumn, longest: int) -> sql.Composed:
    return sql.SQL("left({}, {})").format(as_text(sql.Identifier(column.name)), sql.Literal(longest + 1))


def _problem(column: LakeColumn) -> sql.Composed:
    """The condition of a value that does not fit, or of a key without a value."""
    name, fits = sql.Identifier(column.name), column_fits(column)
    if column.is_key:
        whole = sql.SQL("{} IS DISTINCT FROM NULL").format(name) if fits is None else fits
        return sql.SQL("(({}) IS NOT TRUE)").format(whole)
    return sql.SQL("({} IS NOT NULL AND NOT {})").format(name, fits or sql.SQL("true"))
