"""What is asked for when a table is copied: the statement for a range of its pages, and the Arrow types that come."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from icestream.model.columns import LakeColumn, naming_columns
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


def unfit_queries(columns: Sequence[LakeColumn], pages: PageRange) -> Iterator[tuple[str, str]]:
    """Per column that may have values that do not fit: its name, and a query for key (as JSON) and text of those."""
    pairs = sql.SQL(", ").join(
        sql.SQL("{}, {}").format(sql.Literal(key.name), as_text(sql.Identifier(key.name)))
        for key in naming_columns(columns)
    )
    for column in columns:
        if column.leaves_letters:
            text = as_text(sql.Identifier(column.name))
            listed = f"json_build_object({pairs.as_string()})::text, {text.as_string()}"
            condition = f"{pages.condition()} AND {_problem(column).as_string()}"
            yield column.name, f"SELECT {listed} FROM ONLY {pages.relation} WHERE {condition}"  # noqa: S608


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


def _problem(column: LakeColumn) -> sql.Composed:
    """The condition of a value that does not fit, or of a key without a value."""
    name, fits = sql.Identifier(column.name), column_fits(column)
    if column.is_key:
        whole = sql.SQL("{} IS DISTINCT FROM NULL").format(name) if fits is None else fits
        return sql.SQL("(({}) IS NOT TRUE)").format(whole)
    return sql.SQL("({} IS NOT NULL AND NOT {})").format(name, fits or sql.SQL("true"))
