from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from icestream.config import Settings, load
from icestream.errors import SlotInUse, StateError, StateVersionMismatch
from icestream.log.store import open_store
from icestream.model.ids import new_epoch
from icestream.model.table import TableName
from icestream.runtime.cleanup import plan, remove
from icestream.runtime.connections import describe_source
from icestream.runtime.opening import opened_source
from icestream.sources.postgres.connection import connect_replication
from icestream.sources.postgres.publication import ensure_publication, find_publication
from icestream.sources.postgres.slot import create_slot, drop_slot, find_slot, identify_source
from icestream.state.database import Database
from icestream.state.groups import Groups
from icestream.state.leases import Leases
from support.settings import environment_for, settings_for
from support.state import SCHEMA, LogDriver, staged

SLOT = "cleanup_slot"
PUBLICATION = "cleanup_pub"


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return settings_for(database, tmp_path, SLOT_NAME=SLOT, PUBLICATION_NAME=PUBLICATION)


@pytest.fixture
def pipeline(settings: Settings, state: Database) -> LogDriver:
    """A slot, a publication, some state and a staged file."""
    with opened_source(settings) as conn:
        conn.execute("CREATE TABLE orders (id int PRIMARY KEY)")
        ensure_publication(conn, PUBLICATION, [TableName("public", "orders")], pipeline=SLOT)
    pgconn = connect_replication(settings.source.postgres.conninfo())
    create_slot(pgconn, SLOT)
    pgconn.finish()
    cluster = identify_source(settings.source.postgres.conninfo()).identifier
    driver = LogDriver(state, SLOT, slot=SLOT, cluster=cluster)
    file = staged()
    open_store(settings.sink.staging_root).put(file.path, b"rows")
    driver.claim(file)
    return driver


def schemas(database: str) -> set[str]:
    with psycopg.connect(database) as conn:
        return {name for (name,) in conn.execute("SELECT nspname FROM pg_namespace")}


def test_cleanup_takes_everything_back(settings: Settings, pipeline: LogDriver, database: str) -> None:
    assert len(plan(settings)) == 4
    said = list(remove(settings))
    assert said[0] == f"ok: slot '{SLOT}' removed"
    with opened_source(settings) as conn:
        assert find_slot(conn, SLOT) is None
        assert find_publication(conn, PUBLICATION) is None
    assert SCHEMA not in schemas(database)
    assert [path for path in Path(settings.sink.staging_root).rglob("*") if path.is_file()] == []


def test_cleanup_may_be_repeated(settings: Settings, pipeline: LogDriver) -> None:
    list(remove(settings))
    assert f"ok: slot '{SLOT}' was not there" in list(remove(settings))


def slot_is_there(settings: Settings, name: str = SLOT) -> bool:
    with opened_source(settings) as conn:
        return find_slot(conn, name) is not None


def test_a_slot_that_the_state_does_not_know_stays(settings: Settings, pipeline: LogDriver, state: Database) -> None:
    state.execute("UPDATE {schema}.pipeline_meta SET system_identifier = 42")
    said = list(remove(settings))
    assert said[0].startswith(f"left: slot '{SLOT}'") and f"SELECT pg_drop_replication_slot('{SLOT}')" in said[0]
    assert next(iter(remove(settings))) == said[0], "the state is gone by now"
    assert slot_is_there(settings)
    with opened_source(settings) as conn:
        drop_slot(conn, SLOT)


def publication_is_there(settings: Settings) -> bool:
    with opened_source(settings) as conn:
        return find_publication(conn, PUBLICATION) is not None


@pytest.mark.usefixtures("pipeline")
def test_the_publication_of_another_pipeline_stays(settings: Settings, database: str, tmp_path: Path) -> None:
    never_was = settings_for(database, tmp_path, SLOT_NAME="never_was", PUBLICATION_NAME=PUBLICATION)
    said = list(remove(never_was))
    assert f"left: publication '{PUBLICATION}', which belongs to pipeline '{SLOT}'" in said
    assert slot_is_there(settings) and publication_is_there(settings)


def test_a_publication_that_icestream_did_not_make_stays(settings: Settings, pipeline: LogDriver) -> None:
    with opened_source(settings) as conn:
        conn.execute(f"COMMENT ON PUBLICATION {PUBLICATION} IS NULL".encode())
    assert f"left: publication '{PUBLICATION}', which Icestream has not made" in list(remove(settings))
    assert publication_is_there(settings)


def test_a_publication_stays_with_the_slot_that_stays(settings: Settings, pipeline: LogDriver, state: Database) -> None:
    """Whoever reads that slot needs it."""
    state.execute("UPDATE {schema}.pipeline_meta SET system_identifier = 42")
    said = list(remove(settings))
    assert f"left: publication '{PUBLICATION}', which the slot may need" in said
    assert publication_is_there(settings)
    with opened_source(settings) as conn:
        drop_slot(conn, SLOT)
    assert f"ok: publication '{PUBLICATION}' removed" in list(remove(settings))


def test_a_slot_of_a_start_that_did_not_get_far_is_removed(settings: Settings, pipeline: LogDriver) -> None:
    cluster = identify_source(settings.source.postgres.conninfo()).identifier
    pipeline.identity.intend_slot(SLOT, cluster)
    pipeline.identity._db.execute("DELETE FROM {schema}.pipeline_meta")
    assert next(iter(remove(settings))) == f"ok: slot '{SLOT}' removed"


def test_the_slot_that_the_state_names_is_removed_although_the_settings_changed(
    settings: Settings, pipeline: LogDriver, database: str, tmp_path: Path
) -> None:
    environ = environment_for(database, tmp_path, SLOT_NAME="another", PUBLICATION_NAME=PUBLICATION)
    changed = load(None, environ, {"state.pipeline": SLOT}).settings
    said = list(remove(changed))
    assert said[:2] == [f"ok: slot '{SLOT}' removed", "ok: slot 'another' was not there"]
    assert not slot_is_there(settings)


def test_cleanup_refuses_a_schema_of_another_program(database: str, tmp_path: Path) -> None:
    with psycopg.connect(database) as conn:
        conn.execute("CREATE SCHEMA _pg2iceberg CREATE TABLE log_index (id int)")
    with pytest.raises(StateVersionMismatch, match="another program"):
        list(remove(settings_for(database, tmp_path, SLOT_NAME=SLOT)))


def test_other_pipelines_keep_their_state(
    settings: Settings, pipeline: LogDriver, state: Database, database: str
) -> None:
    other = LogDriver(state, "other")
    list(remove(settings))
    assert SCHEMA in schemas(database)
    assert other.index.flushed() is not None
    assert pipeline.index.flushed() is None


def test_what_is_not_ours_stays_in_the_schema(settings: Settings, pipeline: LogDriver, database: str) -> None:
    with psycopg.connect(database) as conn:
        conn.execute(f"CREATE TABLE {SCHEMA}.notes (v text)".encode())
    list(remove(settings))
    with psycopg.connect(database) as conn:
        left = conn.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [SCHEMA]).fetchall()
    assert left == [("notes",)]


def test_what_rests_on_our_tables_is_not_taken_along(settings: Settings, pipeline: LogDriver, database: str) -> None:
    with psycopg.connect(database) as conn:
        conn.execute(f"CREATE VIEW watched AS SELECT count(*) FROM {SCHEMA}.tables".encode())
    with pytest.raises(StateError) as caught:
        list(remove(settings))
    assert caught.value.hint and "view" in caught.value.hint
    with psycopg.connect(database) as conn:
        conn.execute("DROP VIEW watched")
    assert list(remove(settings))[-1].endswith(f"with schema '{SCHEMA}'")


def test_nothing_is_removed_while_a_worker_runs(settings: Settings, pipeline: LogDriver, state: Database) -> None:
    Groups(state, SLOT).register("default")
    Leases(state, SLOT, "default").acquire("w1", new_epoch(), 30)
    with pytest.raises(StateError, match="w1"):
        list(remove(settings))
    assert pipeline.index.flushed() is not None


def test_nothing_is_removed_while_the_slot_is_read(settings: Settings, pipeline: LogDriver) -> None:
    pgconn = connect_replication(settings.source.postgres.conninfo())
    start = f"START_REPLICATION SLOT {SLOT} LOGICAL 0/0 (proto_version '1', publication_names '{PUBLICATION}')"
    pgconn.exec_(start.encode())
    try:
        with pytest.raises(SlotInUse):
            list(remove(settings))
    finally:
        pgconn.finish()
    assert pipeline.index.flushed() is not None


def test_connect_pg_tells_about_the_slot(settings: Settings, pipeline: LogDriver) -> None:
    lines = list(describe_source(settings))
    assert lines[0].startswith("ok: replication connection")
    assert lines[-1].startswith(f"slot '{SLOT}': not in use, confirmed ")


def test_connect_pg_without_a_slot(database: str, tmp_path: Path) -> None:
    lines = list(describe_source(settings_for(database, tmp_path, SLOT_NAME="nowhere")))
    assert "does not exist yet" in lines[-1]
