"""`icestream check` never says that all is well where a start would be refused."""

from __future__ import annotations

import json
import socket
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
from icestream.model.cursor import Cursor
from icestream.model.table import TableState
from icestream.observe.health import healthy
from icestream.observe.metrics import registry_of
from icestream.observe.server import HealthServer
from icestream.runtime.checks import check_all, is_fatal
from icestream.runtime.collector import StatusCollector
from icestream.runtime.opening import opened_state
from icestream.runtime.status import read_status
from icestream.state.cursors import Cursors
from icestream.state.identity import Identity
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


def fill_catalog(warehouse: Path, *entries: tuple[str, str, str]) -> None:
    """As Spark does; the entries are catalog, namespace and table."""
    with closing(sqlite3.connect(warehouse / "catalog.db")) as catalog, catalog:
        catalog.execute("CREATE TABLE iceberg_tables (catalog_name text, table_namespace text, table_name text)")
        catalog.executemany("INSERT INTO iceberg_tables VALUES (?, ?, ?)", entries)


def test_iceberg_tables_that_nobody_remembers_are_told(bench: CaptureBench) -> None:
    bench.execute(ITEMS, "CREATE TABLE others (id int PRIMARY KEY)")
    fill_catalog(bench.staging.parent, ("icestream", "public", "items"), ("x", "public", "others"))
    (found,) = check_all(bench.settings)
    assert not is_fatal(found) and found.what.startswith("the Iceberg table public.items is there already")


@pytest.fixture
def written(captured: CaptureBench) -> CaptureBench:
    """A live table that is in the catalog."""
    fill_catalog(captured.staging.parent, ("icestream", "public", "items"))
    identity = Identity(captured.db, captured.slot).load()
    assert identity is not None
    cursor = Cursor(epoch=identity.epoch, offset=1, position=captured.flushed())
    Cursors(captured.db, captured.slot, "default").record("public.items", cursor, snapshot_id=1, rows=1)
    return captured


def test_an_iceberg_table_that_is_not_in_the_catalog_any_more_is_found(written: CaptureBench, tmp_path: Path) -> None:
    assert errors_of(written.settings) == []
    (tmp_path / "bare").mkdir()
    fill_catalog(tmp_path / "bare", ("icestream", "public", "others"))
    for warehouse in ("elsewhere", "bare"):
        elsewhere = load(None, {**written.environ(), "WAREHOUSE": str(tmp_path / warehouse)}, {}).settings
        (found,) = errors_of(elsewhere)
        assert "public.items is not in the catalog" in found
        assert "`sink.warehouse`" in found and "icestream resync public.items" in found
    written.tables.request_copy("public.items")
    assert errors_of(elsewhere) == [], "a copy makes it anew"


def test_a_catalog_that_cannot_be_read_without_spark_proves_nothing(written: CaptureBench) -> None:
    (written.staging.parent / "catalog.db").write_bytes(b"no database, but for sure a file" * 100)
    assert errors_of(written.settings) == []


def test_a_rest_catalog_is_asked_for_the_tables(written: CaptureBench, rest_catalog: str) -> None:
    def errors_with(warehouse: str) -> list[str]:
        environ = {**written.environ(), "ICEBERG_CATALOG_URL": rest_catalog, "WAREHOUSE": warehouse}
        environ |= {"CATALOG_AUTH": "bearer", "CATALOG_TOKEN": "right"}
        overrides = {"sink.catalog_props": {"header.X-Tenant": "shop"}, "sink.staging": str(written.staging)}
        return errors_of(load(None, environ, overrides).settings)

    assert errors_with("full") == []
    for warehouse in ("bare", "without-namespace"):
        (found,) = errors_with(warehouse)
        assert "public.items is not in the catalog" in found
    assert errors_with("silent") == [], "it has not said that the table is not there"


def test_a_port_for_metrics_that_is_taken_is_found(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = load(None, {**bench.environ(), "METRICS_ADDR": f":{taken.getsockname()[1]}"}, {}).settings
        (found,) = errors_of(settings)
        assert "metrics_addr: cannot listen on 127.0.0.1" in found and "METRICS_ADDR" in found
    assert errors_of(settings) == []


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_port_that_this_pipeline_serves_metrics_at_is_not_taken(bench: CaptureBench, is_ours: bool) -> None:
    bench.execute(ITEMS)
    name = bench.slot if is_ours else f"{bench.slot}_two"
    registry = registry_of(StatusCollector(name, lambda: read_status(bench.db, bench.settings)))
    with HealthServer(("127.0.0.1", 0), registry, live=healthy, ready=healthy) as server:
        environ = {**bench.environ(), "METRICS_ADDR": f"127.0.0.1:{server.address[1]}"}
        assert len(errors_of(load(None, environ, {}).settings)) == (not is_ours)


def test_an_unreachable_database_that_holds_the_state_is_told_once(tmp_path: Path) -> None:
    settings = settings_for("host=127.0.0.1 port=1 user=u dbname=d", tmp_path)
    assert len(errors_of(settings)) == 1


@pytest.fixture
def rest_catalog() -> Iterator[str]:
    """Answers as a REST catalog does, to those who know the token; how it goes on depends on the warehouse."""
    items = {"namespace": ["public"], "name": "items"}
    tables = "/namespaces/public/tables"
    pages: dict[str, tuple[int, object]] = {
        f"/v1/full{tables}": (200, {"identifiers": [], "next-page-token": "2 of 2"}),
        f"/v1/full{tables}?pageToken=2+of+2": (200, {"identifiers": [items], "next-page-token": None}),
        f"/v1/bare{tables}": (200, {"identifiers": []}),
        f"/v1/silent{tables}": (500, {}),
    }

    class Catalog(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers["Authorization"] == "Bearer right" and self.headers["X-Tenant"] == "shop"
            status, page = pages.get(self.path, (404, {}))
            if self.path.startswith("/v1/config?warehouse="):
                status, page = 200, {"overrides": {"prefix": self.path.rpartition("=")[2]}}
            self.send_response(status if known or status == 404 else 401)
            self.end_headers()
            self.wfile.write(json.dumps(page).encode())

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
