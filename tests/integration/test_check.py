"""`icestream check` never says that all is well where a start would be refused."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psycopg
import pytest

from icestream.config import Settings, load
from icestream.errors import StateVersionMismatch
from icestream.model.table import TableState
from icestream.runtime.checks import check_all, is_fatal
from icestream.runtime.opening import opened_state
from icestream.runtime.status import read_status
from support.capturing import PUBLICATION, CaptureBench
from support.settings import settings_for

ITEMS = "CREATE TABLE items (id int PRIMARY KEY)"


def errors_of(settings: Settings) -> list[str]:
    return [f"{finding.what} {finding.hint}" for finding in check_all(settings) if is_fatal(finding)]


@pytest.fixture
def captured(bench: CaptureBench) -> CaptureBench:
    """A live table, and capture stopped."""
    bench.execute(ITEMS)
    with bench.running() as running:
        bench.catch_up(running)
        bench.go_live()
    return bench


def test_a_pipeline_that_has_run_and_one_that_never_has_pass(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    assert errors_of(bench.settings) == []
    with bench.running() as running:
        bench.catch_up(running)
        bench.go_live()
        assert errors_of(bench.settings) == [], "while it runs, too"
    assert errors_of(bench.settings) == []


def test_a_schema_of_another_program_is_found(database: str, tmp_path: Path) -> None:
    with psycopg.connect(database) as conn:
        conn.execute("CREATE TABLE orders (id int PRIMARY KEY)")
        conn.execute("CREATE SCHEMA _pg2iceberg CREATE TABLE log_index (id int)")
    settings = settings_for(database, tmp_path, SLOT_NAME="check_slot", PUBLICATION_NAME="check_pub")
    (found,) = errors_of(settings)
    assert "holds tables of another program (log_index)" in found and "state.coordinator_schema" in found
    with opened_state(settings) as db, pytest.raises(StateVersionMismatch) as refused:
        read_status(db, settings)
    assert refused.value.hint and "migrate-coord" not in refused.value.hint


def test_a_slot_that_the_state_does_not_know_is_found(bench: CaptureBench) -> None:
    bench.execute(ITEMS, f"SELECT pg_create_logical_replication_slot('{bench.slot}', 'pgoutput')")
    (found,) = errors_of(bench.settings)
    assert "the state knows nothing of it" in found and f"pg_drop_replication_slot('{bench.slot}')" in found


def test_a_slot_that_is_gone_is_found_until_new_copies_are_asked_for(captured: CaptureBench) -> None:
    captured.drop_slot()
    (found,) = errors_of(captured.settings)
    assert f"'{captured.slot}' is gone" in found and "icestream resync" in found
    captured.tables.request_copy("public.items")
    assert errors_of(captured.settings) == []
    (told,) = (finding.what for finding in check_all(captured.settings))
    assert "begins anew" in told


def test_a_slot_that_was_moved_is_found(captured: CaptureBench) -> None:
    captured.execute(
        "INSERT INTO items VALUES (1)",
        f"SELECT pg_replication_slot_advance('{captured.slot}', pg_current_wal_insert_lsn())",
    )
    (found,) = errors_of(captured.settings)
    assert "the slot was moved" in found


def test_another_cluster_is_found(captured: CaptureBench) -> None:
    captured.db.execute("UPDATE {schema}.pipeline_meta SET system_identifier = 42")
    (found,) = errors_of(captured.settings)
    assert "belongs to cluster 42" in found
    assert "`state.pipeline`" in found, "the state may be that of a pipeline that is well"


def test_another_slot_under_the_same_name_of_the_pipeline_is_found(captured: CaptureBench) -> None:
    environ = {**captured.environ(), "SLOT_NAME": f"{captured.slot}_two"}
    settings = load(None, environ, {"state.pipeline": captured.slot}).settings
    (found,) = errors_of(settings)
    assert f"reads slot '{captured.slot}', the settings name slot '{captured.slot}_two'" in found


def test_the_publication_of_another_pipeline_is_found(captured: CaptureBench) -> None:
    settings = load(None, {**captured.environ(), "SLOT_NAME": f"{captured.slot}_two"}, {}).settings
    (found,) = errors_of(settings)
    assert f"'{PUBLICATION}' belongs to pipeline '{captured.slot}'" in found
    assert "another `source.logical.publication_name`" in found


def test_tables_that_will_be_parked_are_told(captured: CaptureBench) -> None:
    captured.execute("DROP TABLE items", ITEMS)
    (found,) = check_all(captured.settings)
    assert not is_fatal(found) and "dropped and created again" in found.what
    captured.tables.park("public.items", "it went wrong")
    assert [row.state for row in captured.tables.all()] == [TableState.PARKED]
    (found,) = check_all(captured.settings)
    assert found.what == "table public.items is parked: it went wrong"
    assert found.hint and "resync" in found.hint


def test_iceberg_tables_that_nobody_remembers_are_told(bench: CaptureBench) -> None:
    bench.execute(ITEMS, "CREATE TABLE others (id int PRIMARY KEY)")
    with closing(sqlite3.connect(bench.staging.parent / "catalog.db")) as catalog, catalog:
        catalog.execute("CREATE TABLE iceberg_tables (catalog_name text, table_namespace text, table_name text)")
        catalog.execute("INSERT INTO iceberg_tables VALUES ('icestream', 'public', 'items'), ('x', 'public', 'others')")
    (found,) = check_all(bench.settings)
    assert not is_fatal(found) and found.what.startswith("the Iceberg table public.items is there already")


def test_an_unreachable_database_that_holds_the_state_is_told_once(tmp_path: Path) -> None:
    settings = settings_for("host=127.0.0.1 port=1 user=u dbname=d", tmp_path)
    assert len(errors_of(settings)) == 1


@pytest.fixture
def rest_catalog() -> Iterator[str]:
    """Answers as a REST catalog does, to those who know the token."""

    class Catalog(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers["Authorization"] == "Bearer right" and self.headers["X-Tenant"] == "shop"
            self.send_response((200 if known else 401) if self.path.startswith("/v1/config?warehouse=") else 404)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            """Nobody listens."""

    server = HTTPServer(("127.0.0.1", 0), Catalog)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("token", "path", "words"),
    [("right", "", None), ("wrong", "", "refuses us (HTTP 401)"), ("right", "/api", "HTTP 404 for /v1/config")],
)
def test_a_rest_catalog_is_asked_with_its_token(
    bench: CaptureBench, rest_catalog: str, token: str, path: str, words: str | None
) -> None:
    bench.execute(ITEMS)
    environ = {**bench.environ(), "ICEBERG_CATALOG_URL": rest_catalog + path}
    environ |= {"CATALOG_AUTH": "bearer", "CATALOG_TOKEN": token}
    found = errors_of(load(None, environ, {"sink.catalog_props": {"header.X-Tenant": "shop"}}).settings)
    assert len(found) == (words is not None)
    assert words is None or words in found[0]


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"sink.catalog_uri": "http://127.0.0.1:1"}, "REST catalog http://127.0.0.1:1 cannot be reached"),
        ({"sink.catalog": {"type": "jdbc", "uri": "jdbc:oracl:x"}}, "jdbc:oracl"),
        ({"sink.catalog": {"type": "jdbc", "uri": "jdbc:postgresql://h/d"}}, "org.postgresql:postgresql"),
        ({"spark.jars": "/nowhere/some.jar"}, "there is no file /nowhere/some.jar"),
        ({"spark.conf": {"spark.jars": "/nowhere/*.jar"}}, "there is no file /nowhere/*.jar"),
        ({"sink.staging": "/proc/staged"}, "staging folder /proc/staged cannot be written"),
        ({"sink.warehouse": "/proc/lake"}, "warehouse /proc/lake cannot be written"),
    ],
)
def test_what_the_lake_needs_is_looked_at(bench: CaptureBench, overrides: dict[str, object], words: str) -> None:
    bench.execute(ITEMS)
    (found,) = errors_of(load(None, bench.environ(), overrides).settings)
    assert words in found


def test_a_probe_leaves_nothing_behind(bench: CaptureBench, tmp_path: Path) -> None:
    bench.execute(ITEMS)
    overrides = {"sink.warehouse": str(tmp_path / "a" / "lake"), "sink.staging": str(tmp_path / "b")}
    assert errors_of(load(None, bench.environ(), overrides).settings) == []
    assert not any(path.name in ("a", "b") or "probe" in path.name for path in tmp_path.rglob("*"))
