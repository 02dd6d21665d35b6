"""Event triggers in the source: what they make certain, and that they stand in nobody's way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from psycopg.conninfo import make_conninfo
from typer.testing import CliRunner

from icestream.capture.options import CaptureOptions
from icestream.cli.main import app
from icestream.errors import SourceError
from icestream.model.table import Relation, TableState
from icestream.sources.postgres import ddl_trigger
from icestream.sources.postgres.connection import connect
from icestream.state.log_entries import LogEntries
from icestream.state.tables import TableRow
from support.capturing import CaptureBench
from support.waiting import wait_for

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, a int, b int)"
TEXTS = "CREATE TABLE texts (id int PRIMARY KEY, v text)"


def live_pipeline(bench: CaptureBench, *statements: str) -> None:
    bench.execute(ITEMS, TEXTS, *statements)
    with bench.running() as running:
        wait_for(bench.tables.all, what="the tables")
        bench.go_live()
        bench.catch_up(running)


def install(bench: CaptureBench) -> None:
    with connect(bench.conninfo) as conn:
        ddl_trigger.install(conn)


def look(bench: CaptureBench) -> None:
    with connect(bench.conninfo) as conn:
        bench.untold().settle(conn)


def items(bench: CaptureBench) -> TableRow:
    row = bench.tables.get("public.items")
    assert row is not None
    return row


def relations(bench: CaptureBench) -> list[Relation]:
    """In the order of the log."""
    entries = LogEntries(bench.db, bench.slot)
    found = entries.after("public.items", 0, max_rows=2**62, max_bytes=2**62)
    return [entries.relation("public.items", entry.relation_version) for entry in found]


def numbers(relation: Relation) -> dict[str, int]:
    return {column.name: column.number for column in relation.columns}


def streaming_early(bench: CaptureBench) -> CaptureOptions:
    source = make_conninfo(bench.conninfo, options="-c logical_decoding_work_mem=64kB")
    return replace(bench.options, source=source)


@pytest.fixture
def told(bench: CaptureBench) -> Iterator[CaptureBench]:
    install(bench)
    live_pipeline(bench)
    yield bench


CHANGES = (
    "INSERT INTO items VALUES (1, 1, 1)",
    "ALTER TABLE items RENAME a TO c",
    "ALTER TABLE items RENAME b TO a",
    "ALTER TABLE items RENAME c TO b",
    "INSERT INTO items VALUES (2, 2, 2)",
    "ALTER TABLE items DROP a",
    "ALTER TABLE items ADD a int",
    "INSERT INTO items VALUES (3, 3, 3)",
    "ALTER TABLE items RENAME a TO d",
    "ALTER TABLE items RENAME b TO a",
)


def test_which_column_is_which_is_certain_whatever_happened_since(told: CaptureBench) -> None:
    told.execute(*CHANGES)
    with told.running() as running:
        told.catch_up(running)
    assert [numbers(relation) for relation in relations(told)] == [
        {"id": 1, "a": 2, "b": 3},
        {"id": 1, "b": 2, "a": 3},
        {"id": 1, "b": 2, "a": 4},
    ]


def test_without_them_it_is_not_guessed(bench: CaptureBench) -> None:
    live_pipeline(bench)
    bench.execute(*CHANGES)
    with bench.running() as running:
        bench.catch_up(running)
    first, *others = relations(bench)
    assert numbers(first) == {"id": 1, "a": 2, "b": 3}
    assert not all(relation.is_numbered for relation in others)


def test_what_was_rolled_back_is_not_believed(told: CaptureBench) -> None:
    swap = ("ALTER TABLE items RENAME a TO c", "ALTER TABLE items RENAME b TO a", "ALTER TABLE items RENAME c TO b")
    insert = "INSERT INTO items SELECT g, g, g FROM generate_series(1, 5000) g"
    with told.running(options=streaming_early(told)) as running:
        wait_for(told.walsender, what="the stream")
        told.execute("BEGIN", "SAVEPOINT s", *swap, insert)
        sent = told.sent()
        wait_for(lambda: told.sent() > sent, what="the first part to be sent")
        told.execute("ROLLBACK TO s", insert, "COMMIT")
        told.catch_up(running)
    assert {tuple(numbers(relation).items()) for relation in relations(told)} == {(("id", 1), ("a", 2), ("b", 3))}


def test_a_transaction_that_is_sent_early_tells_its_own_numbers(told: CaptureBench) -> None:
    with told.running(options=streaming_early(told)) as running:
        insert = "INSERT INTO items SELECT {0} + g, g, g FROM generate_series(1, 5000) g"
        told.execute("BEGIN", insert.format(0), "ALTER TABLE items RENAME a TO c", "ALTER TABLE items RENAME b TO a")
        told.execute("ALTER TABLE items RENAME c TO b", insert.format(5000), "COMMIT")
        told.execute("ALTER TABLE items RENAME b TO c", "ALTER TABLE items RENAME a TO b")
        told.catch_up(running)
    found = {tuple(numbers(relation).items()) for relation in relations(told)}
    assert found == {(("id", 1), ("a", 2), ("b", 3)), (("id", 1), ("b", 2), ("a", 3))}


@pytest.mark.parametrize(
    "statements",
    [
        "ALTER TABLE items ALTER a TYPE bigint",
        "alter table items alter a type bigint, alter b set not null; VACUUM FULL items",
        "ALTER TABLE texts ALTER id TYPE bigint",
    ],
)
def test_what_keeps_every_value_copies_nothing(told: CaptureBench, statements: str) -> None:
    told.execute(*statements.split("; "))
    look(told)
    assert {row.state for row in told.tables.all()} == {TableState.LIVE}


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE items ALTER a TYPE bigint USING a * 1000",
        "ALTER TABLE items ALTER a TYPE text",
        "ALTER TABLE items ADD r float8 DEFAULT random()",
        "DO $$ BEGIN EXECUTE 'ALTER TABLE items ALTER a TYPE bigint ' || 'US' || 'ING a * 1000'; END $$",
    ],
)
def test_what_makes_other_values_copies_the_table(told: CaptureBench, statement: str) -> None:
    told.execute(statement)
    look(told)
    assert items(told).state is TableState.PENDING


def test_a_change_is_looked_at_as_soon_as_it_is_told(told: CaptureBench) -> None:
    with told.running(options=replace(told.options, watch_interval_s=3600.0)) as running:
        wait_for(told.walsender, what="the stream")
        told.catch_up(running)
        told.execute("ALTER TABLE items ALTER a TYPE int USING a + 1")
        wait_for(lambda: items(told).state is TableState.COPYING, what="another copy")
        told.go_live()
        told.execute("DROP TABLE items")
        wait_for(lambda: items(told).state is TableState.PARKED, what="the table to be parked")


def test_the_stream_begins_anew_when_they_come(bench: CaptureBench) -> None:
    live_pipeline(bench)
    with bench.running() as running:
        wait_for(bench.walsender, what="the stream")
        before = bench.walsender()
        install(bench)
        wait_for(lambda: bench.walsender() not in (None, before), what="another stream")
        bench.execute(*CHANGES)
        bench.catch_up(running)
    assert all(relation.is_numbered for relation in relations(bench))


def test_somebody_without_rights_can_still_alter_tables(told: CaptureBench) -> None:
    told.execute("CREATE ROLE someone", "CREATE SCHEMA theirs AUTHORIZATION someone")
    try:
        told.execute("SET ROLE someone", "CREATE TABLE theirs.t (id int PRIMARY KEY, n int)")
        told.execute("ALTER TABLE theirs.t ALTER n TYPE bigint USING n + 1", "DROP TABLE theirs.t")
        assert told.rows("SELECT count(*) FROM icestream_ddl.rewrite") == [(1,)]
    finally:
        told.execute("RESET ROLE", "DROP SCHEMA theirs CASCADE", "DROP ROLE someone")


def test_a_trigger_that_is_broken_lets_statements_pass(told: CaptureBench) -> None:
    told.execute("ALTER TABLE icestream_ddl.rewrite ADD CHECK (false) NOT VALID")
    told.execute("ALTER TABLE items ALTER a TYPE int USING a + 1")
    assert told.rows("SELECT count(*) FROM icestream_ddl.rewrite") == [(0,)]
    look(told)
    assert items(told).state is TableState.PENDING, "what was not noted is believed"


def test_the_command_installs_prints_and_removes(bench: CaptureBench) -> None:
    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["ddl-trigger", *arguments], env=bench.environ(), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    bench.execute(ITEMS)
    printed = run("print")
    for _ in range(2):
        assert "installed" in run("install")
    with connect(bench.conninfo) as conn:
        assert ddl_trigger.find_trigger(conn)
        for _ in range(2):
            assert "removed" in run("remove")
        assert ddl_trigger.find_trigger(conn) is None
        assert conn.execute("SELECT to_regnamespace('icestream_ddl')").fetchone() == (None,)
        conn.execute(printed.encode())
        assert ddl_trigger.find_trigger(conn)
        conn.execute(run("print", "--remove").encode())
        assert ddl_trigger.find_trigger(conn) is None


def test_who_may_not_install_them_is_told_what_to_do(bench: CaptureBench) -> None:
    bench.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'", "GRANT ALL ON SCHEMA public TO plain")
    ((database,),) = bench.rows("SELECT current_database()")
    bench.execute(f"GRANT CREATE ON DATABASE {database} TO plain")
    try:
        with connect(make_conninfo(bench.conninfo, user="plain", password="plain")) as conn:
            with pytest.raises(SourceError, match="plain may not do that") as caught:
                ddl_trigger.install(conn)
            assert "icestream ddl-trigger print" in (caught.value.hint or "")
            assert conn.execute("SELECT to_regnamespace('icestream_ddl')").fetchone() == (None,)
    finally:
        bench.execute("DROP OWNED BY plain CASCADE", "DROP ROLE plain")


def test_with_the_trigger_disabled_nothing_is_taken_as_certain(told: CaptureBench) -> None:
    told.execute("ALTER EVENT TRIGGER icestream_ddl_rewrites DISABLE")
    told.execute("ALTER TABLE items ALTER a TYPE bigint")
    told.execute("ALTER EVENT TRIGGER icestream_ddl_rewrites ENABLE ALWAYS")
    look(told)
    assert items(told).state is TableState.PENDING
