"""First copies range by range: what they bring, and what happens to a table, or to a worker, meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from icestream.errors import SourceReshaped
from icestream.lake.session import Lake
from icestream.materialize import range_copy
from icestream.model.table import TableState
from support.pipeline import Pipeline
from support.waiting import wait_for

ITEMS = (
    "CREATE TABLE items (id int PRIMARY KEY, a text, b text)",
    "INSERT INTO items SELECT g, 'a' || g, repeat('b', 200) FROM generate_series(1, 400) g",
)
ORDERS = (
    "CREATE TABLE orders (id int PRIMARY KEY, note text)",
    "INSERT INTO orders SELECT g, 'n' || g FROM generate_series(1, 100) g",
)
_CREATING = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'CREATE_REPLICATION_SLOT%TEMPORARY%' AND state = 'active'"


class Death(BaseException):
    """Not an Exception: nobody in the code under test may handle it."""


@pytest.fixture
def pipeline(lake: Lake, database: str, tmp_path: Path, namespace: str) -> Iterator[Pipeline]:
    """Ranges of one page, so that small tables have many; they notice what happens before the watcher does."""
    pages = {"source.logical.snapshot_chunk_pages": "1", "source.logical.watch_interval": "2s"}
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace, **pages)
    yield pipeline
    pipeline.close()


@pytest.fixture
def unwatched(lake: Lake, database: str, tmp_path: Path, namespace: str) -> Iterator[Pipeline]:
    """The copy itself has to notice what happens to its table: nobody looks after the start."""
    rare = {"source.logical.snapshot_chunk_pages": "1", "source.logical.watch_interval": "1h"}
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace, **rare)
    yield pipeline
    pipeline.close()


@contextmanager
def after_range(nth: int, action: Callable[[], None]) -> Iterator[None]:
    """Runs `action` when that many ranges are noted."""
    noted: list[str] = []

    def reached(step: str) -> None:
        if step == "range noted":
            noted.append(step)
            if len(noted) == nth:
                action()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(range_copy, "reached", reached)
        yield
    assert len(noted) >= nth, "the copy had too few ranges"


def die() -> None:
    raise Death


def key(pipeline: Pipeline, table: str) -> str:
    return f"{pipeline.settings.sink.namespace}.{table}"


def files_of(pipeline: Pipeline, table: str) -> list[str]:
    return [path for (path,) in pipeline.query(f"SELECT file_path FROM {key(pipeline, table)}.files")]


def copies_of(pipeline: Pipeline, table: str) -> dict[int, list[str]]:
    """The files of the ranges that are noted, by position."""
    copies = pipeline.progress.copies(key(pipeline, table))
    return {
        int(position): [file.path for pages in ranges for file in pages.files or ()]
        for position, ranges in copies.items()
    }


def state_of(pipeline: Pipeline, table: str) -> TableState:
    row = pipeline.tables.get(key(pipeline, table))
    assert row is not None
    return row.state


def test_a_copy_that_died_goes_on_with_the_ranges_that_are_left(pipeline: Pipeline) -> None:
    pipeline.execute(*ITEMS)
    with pipeline.capturing():
        with pytest.raises(Death), after_range(4, die):
            pipeline.bring_forward()
        (written,) = copies_of(pipeline, "items").values()
        assert len(written) == 4
        assert pipeline.query(f"SELECT count(*) FROM {key(pipeline, 'items')}") == [(0,)], "half a copy is visible"
        pipeline.execute("INSERT INTO items SELECT g, 'later' FROM generate_series(401, 900) g")
        pipeline.wait_until_captured()
        pipeline.bring_forward()
        assert copies_of(pipeline, "items") == {}
    found = files_of(pipeline, "items")
    assert set(written) <= set(found), "a range was read again"
    assert len(found) == len(set(found))
    pipeline.assert_equal()


RESHAPINGS = {
    "truncated": "TRUNCATE items",
    "truncated and filled": "TRUNCATE items; INSERT INTO items VALUES (1, 'new', 'new')",
    "rewritten": "VACUUM FULL items",
    "another type": "ALTER TABLE items ALTER a TYPE bytea USING a::bytea",
    "a column gone": "ALTER TABLE items DROP COLUMN b",
    "a column renamed": "ALTER TABLE items RENAME a TO c",
    "columns swapped": "; ".join(f"ALTER TABLE items RENAME {names}" for names in ("a TO c", "b TO a", "c TO b")),
}


@pytest.mark.parametrize("statements", RESHAPINGS.values(), ids=RESHAPINGS.keys())
def test_a_table_that_is_altered_meanwhile_is_copied_at_another_snapshot(
    pipeline: Pipeline, warehouse: Path, statements: str
) -> None:
    pipeline.execute(*ITEMS, *ORDERS)
    with pipeline.capturing():
        (first,) = {row.snapshot_lsn for row in pipeline.tables.all()}
        assert first is not None
        items = pipeline.tables.get(key(pipeline, "items"))
        assert items is not None
        with pytest.raises(SourceReshaped), after_range(3, lambda: pipeline.execute(*statements.split("; "))):
            pipeline.work(items).run(items, max_rows=1)
        given_up = copies_of(pipeline, "items")[first]
        assert given_up and all(Path(path).exists() for path in given_up)
        wait_for(lambda: state_of(pipeline, "items") is TableState.COPYING, what="another snapshot")
        orders = pipeline.tables.get(key(pipeline, "orders"))
        assert orders is not None and orders.snapshot_lsn == first, "the other table goes on"
        pipeline.bring_forward()
        pipeline.wait_until_captured()
        pipeline.bring_forward()
    pipeline.assert_equal()
    assert not any(Path(path).exists() for path in given_up), "files of the first snapshot are left"
    assert list(warehouse.rglob(f"icestream-copy-{first:x}-*")) != [], "those of the other table are there"


def test_a_table_that_is_exchanged_for_another_of_its_name_is_not_mistaken_for_it(unwatched: Pipeline) -> None:
    pipeline = unwatched
    pipeline.execute(*ITEMS, "CREATE SCHEMA other", "CREATE TABLE other.fresh (id int PRIMARY KEY, a text, b text)")

    def exchange() -> None:
        pipeline.execute("ALTER TABLE items RENAME TO old", "ALTER TABLE other.fresh RENAME TO items")
        pipeline.execute("ALTER TABLE other.items SET SCHEMA public")

    with pipeline.capturing():
        with after_range(3, exchange):
            pipeline.bring_forward()
        assert state_of(pipeline, "items") is TableState.LIVE
    assert pipeline.query(f"SELECT count(*), count(a) FROM {key(pipeline, 'items')}") == [(400, 400)]


def test_columns_that_are_added_meanwhile_do_not_disturb_the_copy(pipeline: Pipeline) -> None:
    pipeline.execute(*ITEMS)
    with pipeline.capturing(), after_range(3, lambda: pipeline.execute("ALTER TABLE items ADD c int DEFAULT 7")):
        pipeline.bring_forward()
    assert state_of(pipeline, "items") is TableState.LIVE
    assert pipeline.query(f"SELECT count(*) FROM {key(pipeline, 'items')}") == [(400,)]


def test_every_kind_of_table_is_copied_whole(pipeline: Pipeline) -> None:
    pipeline.execute(
        "CREATE TABLE empty (id int PRIMARY KEY, v text)",
        "CREATE TABLE parent (id int PRIMARY KEY, v text)",
        "INSERT INTO parent SELECT g, repeat('p', 300) FROM generate_series(1, 100) g",
        "CREATE TABLE child (PRIMARY KEY (id), more int) INHERITS (parent)",
        "INSERT INTO child SELECT g, repeat('c', 300), g FROM generate_series(1000, 1050) g",
        "CREATE TABLE computed (id int PRIMARY KEY, v int, twice int GENERATED ALWAYS AS (v * 2) STORED)",
        "INSERT INTO computed SELECT g, g FROM generate_series(1, 500) g",
        "CREATE TABLE parts (id int, at date, v text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)",
        "CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')"
        " PARTITION BY HASH (id)",
        "CREATE TABLE parts_a_0 PARTITION OF parts_a FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
        "CREATE TABLE parts_a_1 PARTITION OF parts_a FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
        # Attached, with its columns in another order and at other numbers.
        "CREATE TABLE parts_b (gone int, v text, at date NOT NULL, id int NOT NULL)",
        "ALTER TABLE parts_b DROP COLUMN gone",
        "ALTER TABLE parts ATTACH PARTITION parts_b FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')",
        "CREATE TABLE parts_rest PARTITION OF parts DEFAULT",
        "INSERT INTO parts SELECT g, date '2026-01-01' + g % 70, repeat('x', 100) FROM generate_series(1, 600) g",
        "CREATE TABLE childless (id int PRIMARY KEY) PARTITION BY LIST (id)",
        "CREATE TABLE wide (id int PRIMARY KEY, big text)",
        "ALTER TABLE wide ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO wide SELECT g, repeat(md5(g::text), 200) FROM generate_series(1, 50) g",
    )
    assert pipeline.source.execute("SELECT count(*) FROM pg_stats WHERE schemaname = 'public'").fetchone() == (0,)
    with pipeline.capturing():
        pipeline.bring_forward()
    pipeline.assert_equal()
    for table, rows in {"empty": 0, "parent": 100, "child": 51, "parts": 600, "childless": 0}.items():
        assert pipeline.query(f"SELECT count(*) FROM {key(pipeline, table)}") == [(rows,)], table


def test_a_partition_that_is_dropped_meanwhile_leads_to_another_snapshot(unwatched: Pipeline) -> None:
    pipeline = unwatched
    pipeline.execute(
        "CREATE TABLE parts (id int PRIMARY KEY, v text) PARTITION BY LIST (id)",
        *(f"CREATE TABLE parts_{n} PARTITION OF parts FOR VALUES IN ({n})" for n in range(6)),
        "INSERT INTO parts SELECT g, 'v' FROM generate_series(0, 5) g",
    )
    with pipeline.capturing():
        with pytest.raises(SourceReshaped), after_range(1, lambda: pipeline.execute("DROP TABLE parts_5")):
            pipeline.bring_forward()
        wait_for(lambda: state_of(pipeline, "parts") is TableState.COPYING, what="another snapshot")
        pipeline.bring_forward()
    pipeline.assert_equal()


def test_files_are_closed_at_their_size(lake: Lake, database: str, tmp_path: Path, namespace: str) -> None:
    size = {"source.logical.snapshot_target_file_size": "100kb"}
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace, **size)
    try:
        pipeline.execute(
            "CREATE TABLE items (id int PRIMARY KEY, v text)",
            "INSERT INTO items SELECT g, md5(g::text) || md5((-g)::text) FROM generate_series(1, 20000) g",
        )
        with pipeline.capturing():
            pipeline.bring_forward()
        sizes = [size for (size,) in pipeline.query(f"SELECT file_size_in_bytes FROM {namespace}.items.files")]
        assert len(sizes) > 3
        assert all(100 * 1024 <= size < 400 * 1024 for size in sorted(sizes)[1:]), sizes
        pipeline.assert_equal()
    finally:
        pipeline.close()


@pytest.mark.parametrize(
    ("clause", "is_ours"),
    [
        ("TBLPROPERTIES ('write.parquet.compression-codec' = 'gzip', 'write.data.path' = '{folder}/elsewhere')", True),
        ("TBLPROPERTIES ('write.parquet.row-group-size-bytes' = '100000')", False),
        ("PARTITIONED BY (bucket(4, id))", False),
    ],
)
def test_a_table_that_exists_is_written_as_it_asks(
    pipeline: Pipeline, tmp_path: Path, clause: str, is_ours: bool
) -> None:
    name = key(pipeline, "items")
    pipeline.query(f"CREATE NAMESPACE {pipeline.settings.sink.namespace}")
    pipeline.query(f"CREATE TABLE {name} (id int NOT NULL, a string, b string) {clause.format(folder=tmp_path)}")
    pipeline.execute(*ITEMS, "INSERT INTO items VALUES (-1, 'x', NULL)")
    with pipeline.capturing():
        pipeline.bring_forward()
    found = files_of(pipeline, "items")
    assert {"icestream-copy" in path for path in found} == {is_ours}
    if is_ours:
        assert all(path.startswith(f"{tmp_path}/elsewhere/") for path in found)
    pipeline.assert_equal()


def test_a_table_written_by_spark_is_copied_again_when_it_was_altered(pipeline: Pipeline) -> None:
    name = key(pipeline, "items")
    pipeline.query(f"CREATE NAMESPACE {pipeline.settings.sink.namespace}")
    pipeline.query(f"CREATE TABLE {name} (id int NOT NULL, a string, b string) PARTITIONED BY (bucket(4, id))")
    pipeline.execute(*ITEMS)
    with pipeline.capturing():
        pipeline.execute("VACUUM FULL items")
        with pytest.raises(SourceReshaped):
            pipeline.bring_forward()
        wait_for(lambda: state_of(pipeline, "items") is TableState.COPYING, what="another snapshot")
        pipeline.bring_forward()
    pipeline.assert_equal()


def test_a_table_that_is_added_is_exact_with_transactions_before_and_changes_during_its_copy(
    pipeline: Pipeline,
) -> None:
    pipeline.execute(*ITEMS, *ORDERS)
    pipeline.configure("public.orders")
    with pipeline.capturing():
        pipeline.bring_forward()
    (orders,) = pipeline.tables.all()
    pipeline.configure("public.orders,public.items")

    with psycopg.connect(pipeline.conninfo) as before:
        before.execute("INSERT INTO items VALUES (1003, 'before', NULL)")
        before.execute("UPDATE items SET a = 'before' WHERE id = 1")
        before.execute("DELETE FROM items WHERE id = 2")

        def commit() -> None:
            with psycopg.connect(pipeline.conninfo, autocommit=True) as looking:
                wait_for(lambda: looking.execute(_CREATING).fetchone(), what="a slot that waits for the transaction")
            before.commit()

        committing = threading.Thread(target=commit)
        committing.start()
        with pipeline.capturing():
            committing.join()
            wait_for(lambda: _is_offered(pipeline, "items"), what="the copy to be offered")
            pipeline.execute("DELETE FROM items WHERE id BETWEEN 10 AND 20", "UPDATE orders SET note = 'meanwhile'")
            with after_range(3, lambda: pipeline.execute(*_MEANWHILE)):
                pipeline.bring_forward()
            pipeline.wait_until_captured()
            pipeline.bring_forward()
    pipeline.assert_equal()
    after = pipeline.tables.get(orders.key)
    assert after is not None
    assert (after.state, after.completed_at) == (TableState.LIVE, orders.completed_at), (
        "the other table was copied again"
    )
    assert pipeline.query(f"SELECT a FROM {key(pipeline, 'items')} WHERE id IN (1, 1003)") == [("before",), ("before",)]


def _is_offered(pipeline: Pipeline, table: str) -> bool:
    row = pipeline.tables.get(key(pipeline, table))
    return row is not None and row.state is TableState.COPYING


_MEANWHILE = (
    "INSERT INTO items SELECT g, 'during' FROM generate_series(2000, 2100) g",
    "UPDATE items SET b = 'during' WHERE id % 7 = 0",
    "DELETE FROM items WHERE id % 5 = 0",
    "UPDATE items SET id = -id WHERE id % 11 = 0",
    "INSERT INTO orders VALUES (5000, 'during')",
)


def test_a_table_without_copy_has_only_what_came_later(
    lake: Lake, database: str, tmp_path: Path, namespace: str
) -> None:
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace)
    try:
        pipeline.execute(*ITEMS)
        entry = pipeline.settings.tables[0].model_copy(update={"skip_snapshot": True})
        pipeline.settings = pipeline.settings.model_copy(update={"tables": (entry,)})
        with pipeline.capturing():
            pipeline.wait_until_captured()
            pipeline.execute("INSERT INTO items VALUES (1001, 'new', 'new')", "UPDATE items SET a = 'upd' WHERE id = 3")
            pipeline.wait_until_captured()
            pipeline.bring_forward()
        found = pipeline.query(f"SELECT id, a FROM {namespace}.items ORDER BY id")
        assert found == [(3, "upd"), (1001, "new")]
        assert pipeline.progress.copies(f"{namespace}.items") == {}
    finally:
        pipeline.close()
