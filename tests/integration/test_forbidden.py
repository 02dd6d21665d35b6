"""What the source does not let us read, or not whole, is never taken for all there is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from icestream.errors import SourceForbidden, TableParked
from icestream.lake.session import Lake
from icestream.sources.postgres.connection import connect, pinned
from icestream.sources.postgres.ranges import reading
from support.pipeline import Pipeline

_TABLE = "CREATE TABLE items (id int PRIMARY KEY, v text)"
_ROWS = "INSERT INTO items SELECT n, 'x' FROM generate_series(1, 10) n"
_HIDE = ("ALTER TABLE items ENABLE ROW LEVEL SECURITY", "CREATE POLICY few ON items USING (id <= 3)")


@pytest.fixture
def reader(database: str) -> Iterator[str]:
    """A role of its own that may read `items`."""
    with psycopg.connect(database, autocommit=True) as conn:
        for statement in (
            "CREATE ROLE reader LOGIN PASSWORD 'reader'",
            _TABLE,
            _ROWS,
            "GRANT SELECT ON items TO reader",
        ):
            conn.execute(statement.encode())
        yield make_conninfo(database, user="reader", password="reader")
        conn.execute("DROP OWNED BY reader")
        conn.execute("DROP ROLE reader")


@contextmanager
def snapshot_of(database: str) -> Iterator[str]:
    with psycopg.connect(database) as conn:
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        (name,) = conn.execute("SELECT pg_export_snapshot()").fetchall()[0]
        yield name


def run(database: str, *statements: str) -> None:
    with psycopg.connect(database, autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement.encode())


def count(reader: str, snapshot: str) -> int:
    with reading(pinned(reader), snapshot) as rows:
        return sum(batch.num_rows for batch in rows.batches("SELECT id FROM items"))


def test_rows_that_a_policy_hides_are_not_left_out_in_silence(database: str, reader: str) -> None:
    with snapshot_of(database) as snapshot:
        assert count(reader, snapshot) == 10
    run(database, *_HIDE)
    with snapshot_of(database) as snapshot, pytest.raises(SourceForbidden):
        count(reader, snapshot)
    with connect(reader) as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute("SELECT count(*) FROM items")


def test_a_range_is_read_without_timeouts(database: str, reader: str) -> None:
    run(database, "ALTER ROLE reader SET transaction_timeout = '1h'")
    with snapshot_of(database) as snapshot, reading(pinned(reader), snapshot) as rows:
        (batch,) = rows.batches("SELECT current_setting('transaction_timeout') AS timeout")
    assert batch.column(0).to_pylist() == ["0"]


@pytest.mark.parametrize("taken", [("REVOKE SELECT ON items FROM reader",), _HIDE], ids=["revoked", "hidden"])
@pytest.mark.parametrize("partition", [(), ("bucket[2](id)",)], ids=["by tasks", "by spark"])
def test_a_table_that_may_not_be_copied_is_parked(
    lake: Lake,
    warehouse: Path,
    namespace: str,
    database: str,
    reader: str,
    taken: tuple[str, ...],
    partition: list[str],
) -> None:
    tables = [{"name": "public.items", "iceberg": {"partition": list(partition)}}]
    pipeline = Pipeline(lake, database, warehouse, namespace=namespace, tables=tables)
    try:
        with pipeline.capturing():
            pipeline.conninfo = reader
            pipeline.execute(*taken)
            (row,) = pipeline.rows_with_work()
            with pytest.raises(TableParked, match="may not be read") as parked:
                pipeline.advance(row)
        assert "GRANT" in (parked.value.hint or "").upper()
    finally:
        pipeline.close()
