"""The coordination schema: made once, by whoever comes first, and never mixed with another program's tables."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from icestream.errors import StateError, StateVersionMismatch
from icestream.model.cursor import Cursor
from icestream.state.cleanup import forget_pipeline
from icestream.state.cursors import Cursors
from icestream.state.database import Database
from icestream.state.leases import Leases
from icestream.state.migrate import migrate, require_current
from support.state import PIPELINE, SCHEMA, LogDriver, fill_every_table, staged, tables_with_rows

NAMES_IN_SPEC = {
    *("log_seq", "log_index", "mat_cursor", "consumer", "pipeline_meta", "flushed_lsn", "tables"),
    *("snapshot_progress", "query_watermarks", "pending_markers", "marker_emissions"),
}


@pytest.fixture
def db(database: str) -> Database:
    return Database(database, SCHEMA)


def tables_of(db: Database) -> set[str]:
    return {
        row["tablename"]
        for row in db.fetch("SELECT tablename FROM pg_tables WHERE schemaname = %(s)s", {"s": db.schema})
    }


def test_it_makes_the_tables_and_may_be_repeated(db: Database) -> None:
    newest = migrate(db)
    assert tables_of(db) >= NAMES_IN_SPEC
    assert migrate(db) == newest
    require_current(db)


def test_many_can_start_at_once(database: str) -> None:
    databases = [Database(database, SCHEMA) for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        assert len(set(threads.map(migrate, databases))) == 1
    versions = databases[0].fetch("SELECT version FROM {schema}.schema_version")
    assert len(versions) == migrate(databases[0])


@pytest.mark.parametrize("schema", ['Weird "name" {x}', "ünïcode", "select"])
def test_any_schema_name_works(database: str, schema: str) -> None:
    db = Database(database, schema)
    migrate(db)
    log = LogDriver(db)
    log.claim(staged())
    assert log.index.flushed() is not None


def test_an_empty_schema_made_by_an_administrator_is_used(db: Database) -> None:
    db.execute("CREATE SCHEMA {schema}")
    migrate(db)


def test_two_schemas_live_side_by_side(db: Database, database: str) -> None:
    migrate(db)
    other = Database(database, "other")
    migrate(other)
    LogDriver(db)
    assert LogDriver(other).index.flushed() is not None


def test_tables_of_another_program_are_refused(db: Database) -> None:
    db.execute("CREATE SCHEMA {schema}")
    db.execute("CREATE TABLE {schema}.log_index (table_name text, end_offset bigint)")
    with pytest.raises(StateVersionMismatch, match=r"another program \(log_index\)") as caught:
        migrate(db)
    assert "state.coordinator_schema" in str(caught.value.hint)
    with pytest.raises(StateVersionMismatch):
        require_current(db)
    assert tables_of(db) == {"log_index"}


def test_a_version_table_of_another_program_is_refused(db: Database) -> None:
    db.execute("CREATE SCHEMA {schema}")
    db.execute("CREATE TABLE {schema}.schema_version (version int, name text)")
    db.execute("INSERT INTO {schema}.schema_version VALUES (1, 'flyway baseline')")
    with pytest.raises(StateVersionMismatch, match="not ours"):
        migrate(db)


def test_a_newer_version_is_refused(db: Database) -> None:
    newest = migrate(db)
    db.execute("INSERT INTO {schema}.schema_version VALUES (%(next)s, 'future')", {"next": newest + 1})
    for check in (migrate, require_current):
        with pytest.raises(StateVersionMismatch, match=f"has version {newest + 1}, this program knows up to {newest}"):
            check(db)


def test_a_missing_or_older_schema_leads_to_the_migration(db: Database) -> None:
    with pytest.raises(StateVersionMismatch, match='no coordination schema "_pg2iceberg" yet') as caught:
        require_current(db)
    assert caught.value.hint == "run `icestream migrate-coord`"
    assert tables_of(db) == set()


def test_a_failed_migration_leaves_nothing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from icestream.state import migrate as module

    newest = len(module._known())
    broken = (*module._known(), module.Migration(newest + 1, "broken", "CREATE TABLE {schema}.half (); SELECT 1/0"))
    monkeypatch.setattr(module, "_known", lambda: broken)
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(db)
    assert tables_of(db) == set()


def test_a_later_migration_is_added_to_an_existing_schema(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from icestream.state import migrate as module

    now = migrate(db)
    LogDriver(db).claim(staged())
    longer = (*module._known(), module.Migration(now + 1, "more", "CREATE TABLE {schema}.more ()"))
    monkeypatch.setattr(module, "_known", lambda: longer)
    with pytest.raises(StateVersionMismatch, match=f"has version {now}, this program needs {now + 1}"):
        require_current(db)
    assert migrate(db) == now + 1
    require_current(db)
    assert db.fetch("SELECT FROM {schema}.log_index")


def test_a_role_that_may_not_create_is_told_so(db: Database, database: str) -> None:
    db.execute("CREATE ROLE limited LOGIN PASSWORD 'limited'")
    try:
        with pytest.raises(StateError, match="permission denied for database"):
            migrate(Database(make_conninfo(database, user="limited", password="limited"), SCHEMA))
    finally:
        db.execute("DROP ROLE limited")


class TestForgetting:
    def fill(self, db: Database, pipeline: str) -> None:
        log = LogDriver(db, pipeline)
        log.claim(staged())
        log.index.intend([pipeline])
        Cursors(db, pipeline, "default").record("t", Cursor(log.epoch, 1, 1), snapshot_id=1, rows=1)
        Leases(db, pipeline, "default").acquire("w", log.epoch, 30)

    def test_only_the_rows_of_that_pipeline_go(self, state: Database) -> None:
        for pipeline in (PIPELINE, "other"):
            self.fill(state, pipeline)
        assert forget_pipeline(state, PIPELINE) is False
        assert LogDriver(state).index.flushed() is not None
        assert Leases(state, PIPELINE, "default").workers() == []
        assert Leases(state, "other", "default").active() == ["w"]

    def test_the_last_one_takes_the_schema_with_it(self, state: Database) -> None:
        self.fill(state, PIPELINE)
        assert forget_pipeline(state, PIPELINE) is True
        assert tables_of(state) == set()

    def test_no_table_is_forgotten(self, state: Database) -> None:
        for pipeline in (PIPELINE, "other"):
            fill_every_table(state, pipeline, "default")
        filled = tables_with_rows(state, PIPELINE)
        assert filled >= NAMES_IN_SPEC
        assert forget_pipeline(state, PIPELINE) is False
        assert tables_with_rows(state, PIPELINE) == set()
        assert tables_with_rows(state, "other") == filled

    def test_another_programs_schema_is_not_touched(self, db: Database) -> None:
        db.execute("CREATE SCHEMA {schema}")
        db.execute("CREATE TABLE {schema}.flushed_lsn (id int)")
        with pytest.raises(StateVersionMismatch):
            forget_pipeline(db, PIPELINE)
        assert tables_of(db) == {"flushed_lsn"}
