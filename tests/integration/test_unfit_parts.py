"""Unfit values of a range, part by part: together they are all, and no part is too large to be sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psycopg
import pytest

from icestream.materialize.source_rows import RangeRows, SourceRows, UnfitValue
from icestream.model.copying import CopyRange
from icestream.model.letters import LONGEST_KEY_PART, LONGEST_VALUE
from icestream.sources.postgres.catalog import read_tables
from icestream.sources.postgres.connection import connect

Made = tuple[SourceRows, CopyRange]


@pytest.fixture
def made(database: str) -> Iterator[Callable[..., Made]]:
    """A table `t` at a snapshot, with its only range."""
    with ExitStack() as stack:

        def make(*statements: str) -> Made:
            holder = stack.enter_context(connect(database))
            with psycopg.connect(database, autocommit=True) as admin:
                for statement in statements:
                    admin.execute(statement.encode())
                (oid,) = admin.execute("SELECT 't'::regclass::oid::bigint").fetchone() or (0,)
            (table,) = read_tables(holder, [oid])
            stack.enter_context(holder.transaction())
            holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            (snapshot,) = holder.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
            source = SourceRows(table.relation(), table.primary_key, database, snapshot)
            return source, CopyRange(0, oid, 0, None, 1)

        yield make


def parts(made: Made, most: int) -> Iterator[tuple[UnfitValue, ...]]:
    """The first as reading the rows gives it, the others as they are asked for."""
    rows = RangeRows(*made, most_unfit=most)
    assert sum(batch.num_rows for batch in rows)
    part = rows.unfit
    yield part.values
    while part.end is not None:
        part = RangeRows(*made, most_unfit=most).find_unfit(part.end)
        yield part.values


@pytest.mark.parametrize("most", [1, 3, 7, 20, 1000])
def test_all_parts_together_are_all_values(made: Callable[..., Made], most: int) -> None:
    table = made(
        "CREATE TABLE t (id int PRIMARY KEY, a numeric, fine numeric, b date)",
        "INSERT INTO t SELECT g, 'NaN', g, 'infinity' FROM generate_series(1, 10) g",
        "INSERT INTO t SELECT g, g FROM generate_series(11, 400) g",
        "UPDATE t SET a = 'Infinity' WHERE id <= 10",
    )
    found = list(parts(table, most))
    assert max(map(len, found)) <= most
    values = [value for part in found for value in part]
    assert len({(value.place, value.column) for value in values}) == len(values) == 20
    assert {value.text for value in values} == {"Infinity", "infinity"}
    assert {value.key for value in values} == {f'{{"id" : "{number}"}}' for number in range(1, 11)}


def test_a_part_is_cut_by_its_size_and_holds_the_beginning_of_what_is_huge(made: Callable[..., Made]) -> None:
    table = made(
        "CREATE TABLE t (id text, huge text[])",
        "INSERT INTO t SELECT repeat('k', 100000), ARRAY[ARRAY[repeat(g::text, 1500000)]] FROM generate_series(1, 9) g",
    )
    found = list(parts(table, 1000))
    assert [len(part) for part in found] == [8, 1]
    assert {len(value.text or "") for part in found for value in part} == {LONGEST_VALUE + 1}


def test_a_key_is_not_brought_whole(made: Callable[..., Made]) -> None:
    source, pages = made("CREATE TABLE t (id text, price numeric)", "INSERT INTO t VALUES (repeat('k', 100000), 'NaN')")
    keyed = SourceRows(source.relation, ("id",), source.conninfo, source.snapshot)
    ((value,),) = parts((keyed, pages), 10)
    assert len(value.key) == LONGEST_KEY_PART + 1 + len('{"id" : ""}')
