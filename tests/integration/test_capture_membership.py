"""Tables and publications that are exchanged, weakened or renamed behind capture's back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icestream.errors import Retry, SlotLost, SourceError
from icestream.model.table import TableName, TableState
from icestream.runtime.checks import check_source, is_fatal
from icestream.state.tables import TableRow
from support.capturing import PUBLICATION, CaptureBench
from support.waiting import wait_for

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, v text)"
ORDERS = "CREATE TABLE orders (id int PRIMARY KEY)"
VIA_ROOT = "WITH (publish_via_partition_root = true)"


def live_pipeline(bench: CaptureBench, *statements: str) -> None:
    """A table with one row in the log, and capture stopped."""
    bench.execute(ITEMS, *statements)
    with bench.running() as running:
        wait_for(bench.tables.all, what="the tables")
        bench.go_live()
        bench.execute("INSERT INTO items VALUES (1, 'a')")
        bench.catch_up(running)


def refusal(bench: CaptureBench) -> BaseException:
    with bench.running() as running:
        return running.failure()


def items(bench: CaptureBench) -> TableRow:
    row = bench.tables.get("public.items")
    assert row is not None
    return row


def ids(bench: CaptureBench) -> list[str | None]:
    return [change.data["id"] for change in bench.changes("public.items") if change.data]


def wait_until_parked(bench: CaptureBench) -> str:
    wait_for(lambda: items(bench).state is TableState.PARKED, what="the table to be parked")
    return items(bench).reason or ""


def test_a_publication_that_was_created_again_parks_the_tables(bench: CaptureBench) -> None:
    live_pipeline(bench)
    bench.execute(
        f"DROP PUBLICATION {PUBLICATION}",
        "INSERT INTO items VALUES (2, 'not sent')",
        f"CREATE PUBLICATION {PUBLICATION} FOR TABLE items {VIA_ROOT}",
    )
    assert isinstance(refusal(bench), SlotLost)
    assert "created again" in wait_until_parked(bench)
    bench.tables.request_copy("public.items")
    with bench.running() as running:
        bench.go_live()
        bench.catch_up(running)


@pytest.mark.parametrize("is_there", [True, False])
def test_another_publication_in_the_settings_is_refused_and_parks_nothing(bench: CaptureBench, is_there: bool) -> None:
    live_pipeline(bench)
    bench.execute("INSERT INTO items VALUES (2, 'sent by the first one only')")
    if is_there:
        bench.execute(f"CREATE PUBLICATION other FOR TABLE items {VIA_ROOT}")
    options = bench.options
    bench.options = replace(options, publication="other")
    failure = refusal(bench)
    assert isinstance(failure, SourceError) and failure.retry is Retry.NEVER
    assert failure.hint and "cleanup" in failure.hint
    assert items(bench).state is TableState.LIVE
    bench.options = options
    with bench.running() as running:
        bench.catch_up(running)
    assert ids(bench) == ["1", "2"]


def test_another_pipeline_with_the_same_publication_is_refused_and_parks_nothing(bench: CaptureBench) -> None:
    live_pipeline(bench)
    bench.execute(ORDERS)
    other = replace(bench.options, pipeline="other", slot=f"{bench.slot}_other")
    with bench.running(options=other) as running:
        failure = running.failure()
    assert isinstance(failure, SourceError) and f"belongs to pipeline '{bench.slot}'" in str(failure)
    with bench.running() as running:
        bench.catch_up(running)
    assert items(bench).state is TableState.LIVE


def test_a_table_that_left_the_publication_for_a_while_is_parked(bench: CaptureBench) -> None:
    live_pipeline(bench, ORDERS)
    bench.execute(
        f"ALTER PUBLICATION {PUBLICATION} DROP TABLE items",
        "INSERT INTO items VALUES (2, 'not sent')",
        f"ALTER PUBLICATION {PUBLICATION} ADD TABLE ONLY items",
    )
    with bench.running() as running:
        bench.catch_up(running)
        assert "for a while" in wait_until_parked(bench)
        assert bench.tables.get("public.orders").state is TableState.LIVE  # type: ignore[union-attr]
        bench.tables.request_copy("public.items")
        bench.go_live()
        bench.catch_up(running)
    with bench.running() as running:
        bench.catch_up(running)
        assert items(bench).state is TableState.LIVE


def test_a_schema_that_left_the_publication_for_a_while_parks_its_tables(bench: CaptureBench) -> None:
    bench.execute(f"CREATE PUBLICATION {PUBLICATION} FOR TABLES IN SCHEMA public {VIA_ROOT}")
    live_pipeline(bench)
    bench.execute(
        f"ALTER PUBLICATION {PUBLICATION} DROP TABLES IN SCHEMA public",
        "INSERT INTO items VALUES (2, 'not sent')",
        f"ALTER PUBLICATION {PUBLICATION} ADD TABLES IN SCHEMA public",
    )
    with bench.running() as running:
        bench.catch_up(running)
        assert "for a while" in wait_until_parked(bench)


def test_a_publication_that_leaves_out_operations_parks_the_tables_while_it_runs(bench: CaptureBench) -> None:
    live_pipeline(bench)
    with bench.running():
        wait_for(bench.walsender, what="the stream")
        bench.execute(f"ALTER PUBLICATION {PUBLICATION} SET (publish = 'insert')", "DELETE FROM items")
        assert "not whole" in wait_until_parked(bench)
        bench.tables.request_copy("public.items")
        bench.go_live()
    assert bench.rows("SELECT pubdelete FROM pg_publication") == [(True,)]


def test_a_publication_that_is_exchanged_while_it_runs_parks_the_tables(bench: CaptureBench) -> None:
    live_pipeline(bench)
    with bench.running() as running:
        wait_for(bench.walsender, what="the stream")
        bench.execute(
            "BEGIN",
            f"DROP PUBLICATION {PUBLICATION}",
            f"CREATE PUBLICATION {PUBLICATION} FOR TABLE items {VIA_ROOT}",
            "COMMIT",
        )
        assert isinstance(running.failure(), SlotLost)
    assert "created again" in wait_until_parked(bench)


@pytest.mark.parametrize("publication", ["FOR ALL TABLES", "FOR TABLES IN SCHEMA public", None])
def test_a_table_that_is_created_again_while_it_runs_is_parked_and_can_be_copied(
    bench: CaptureBench, publication: str | None
) -> None:
    if publication:
        bench.execute(f"CREATE PUBLICATION {PUBLICATION} {publication} {VIA_ROOT}")
    live_pipeline(bench)
    with bench.running() as running:
        wait_for(bench.walsender, what="the stream")
        bench.execute("DROP TABLE items", ITEMS, "INSERT INTO items VALUES (2, 'of another table')")
        assert "created again" in wait_until_parked(bench)
        bench.tables.request_copy("public.items")
        bench.go_live()
        bench.execute("INSERT INTO items VALUES (3, 'streamed')")
        bench.catch_up(running)
        assert "3" in ids(bench)
    with bench.running() as running:
        bench.catch_up(running)
        assert items(bench).state is TableState.LIVE


def test_tables_that_are_swapped_by_renames_park_the_one_that_is_meant(bench: CaptureBench) -> None:
    bench.execute(f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES {VIA_ROOT}")
    live_pipeline(bench)
    bench.settings = bench.settings_for("public.items")
    with bench.running():
        wait_for(bench.walsender, what="the stream")
        bench.execute(
            "CREATE TABLE items_new (LIKE items INCLUDING ALL)",
            "BEGIN",
            "ALTER TABLE items RENAME TO items_old",
            "ALTER TABLE items_new RENAME TO items",
            "COMMIT",
            "INSERT INTO items VALUES (2, 'of another table')",
            "INSERT INTO items_old VALUES (7, 'of the table before')",
        )
        assert "another table has its name" in wait_until_parked(bench)
        ((oid,),) = bench.rows("SELECT 'items'::regclass::oid::bigint")
        assert (items(bench).pg_oid, items(bench).source) == (oid, TableName("public", "items"))


def test_a_dropped_table_is_parked_while_it_runs(bench: CaptureBench) -> None:
    live_pipeline(bench, ORDERS)
    with bench.running() as running:
        wait_for(bench.walsender, what="the stream")
        bench.execute("DROP TABLE items")
        assert "was dropped" in wait_until_parked(bench)
        bench.execute("INSERT INTO orders VALUES (1)")
        bench.catch_up(running)
    assert len(bench.changes("public.orders")) == 1


@pytest.mark.parametrize("tables", ["public.*", "public.items"])
def test_a_renamed_table_goes_on_under_its_key(bench: CaptureBench, tables: str) -> None:
    bench.settings = bench.settings_for(tables)
    live_pipeline(bench, "CREATE SCHEMA shop")
    with bench.running() as running:
        wait_for(bench.walsender, what="the stream")
        bench.execute("ALTER TABLE items RENAME TO things", "INSERT INTO things VALUES (2, 'b')")
        bench.catch_up(running)
        wait_for(lambda: items(bench).source == TableName("public", "things"), what="the new name")
    bench.execute("INSERT INTO things VALUES (3, 'c')", "ALTER TABLE things SET SCHEMA shop")
    assert not list(filter(is_fatal, check_source(bench.settings)))
    for id_ in (4, 5):
        with bench.running() as running:
            bench.execute(f"INSERT INTO shop.things VALUES ({id_}, 'd')")
            bench.catch_up(running)
    (row,) = bench.tables.all()
    assert (row.key, row.source, row.state) == ("public.items", TableName("shop", "things"), TableState.LIVE)
    assert ids(bench) == ["1", "2", "3", "4", "5"]


def test_a_view_under_the_old_name_does_not_take_the_tables_place(bench: CaptureBench) -> None:
    bench.settings = bench.settings_for("public.items")
    live_pipeline(bench)
    bench.execute("ALTER TABLE items RENAME TO items_base", "CREATE VIEW items AS SELECT * FROM items_base")
    with bench.running() as running:
        bench.execute("INSERT INTO items VALUES (2, 'b')")
        bench.catch_up(running)
    assert items(bench).state is TableState.LIVE
    assert ids(bench) == ["1", "2"]


def test_a_table_that_is_added_later_without_a_copy_is_not_taken_for_one_that_was_missing(bench: CaptureBench) -> None:
    bench.settings = bench.settings_for("public.items")
    live_pipeline(bench, ORDERS)
    entries = bench.settings_for("public.items,public.orders").tables
    entries = tuple(entry.model_copy(update={"skip_snapshot": entry.name == "public.orders"}) for entry in entries)
    bench.settings = bench.settings.model_copy(update={"tables": entries})
    with bench.running() as running:
        bench.execute("INSERT INTO orders VALUES (1)")
        bench.catch_up(running)
    assert {row.key: row.state for row in bench.tables.all()} == {
        "public.items": TableState.LIVE,
        "public.orders": TableState.LIVE,
    }


def test_tables_that_are_being_copied_are_parked_with_a_lost_slot(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    with bench.running():
        wait_for(lambda: bench.tables.all() and items(bench).state is TableState.COPYING, what="an offer")
        position = items(bench).snapshot_lsn
        assert position is not None
        bench.starter().refuse("the slot is gone")
        assert items(bench).state is TableState.PARKED
        assert not bench.tables.complete_copy("public.items", position=position, rows=0)
