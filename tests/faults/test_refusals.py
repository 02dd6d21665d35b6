"""What a person set wrong is refused at the start: what is wrong, where, and what to do; no traceback, no secret."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from psycopg.conninfo import make_conninfo

from icestream.embedded.postgres import EmbeddedPostgres
from support.processes import Processes

_PASSWORD = "correct horse"


class Site:
    """A database with one good table, and settings that a test spoils."""

    def __init__(self, conninfo: str, processes: Processes) -> None:
        self.processes = processes
        self.conninfo = conninfo
        self.source = psycopg.connect(conninfo, autocommit=True)
        self.source.execute("CREATE TABLE good (id int PRIMARY KEY)")

    def write(self, *, conninfo: str | None = None, tables: tuple[str, ...] = ("public.good",), **sink: Any) -> None:
        warehouse = str(self.processes.folder / "warehouse")
        settings = {
            "tables": [{"name": name} for name in tables],
            "source": {"postgres": {"url": conninfo or self.conninfo}, "logical": {"slot_name": "refused"}},
            "sink": {"warehouse": warehouse, **sink},
        }
        self.processes.settings.write_text(yaml.safe_dump(settings))

    def refusal(self, command: str, code: int = 1) -> str:
        said = self.processes.run(command, code=code)
        assert "Traceback" not in said and _PASSWORD not in said
        return said

    def conninfo_of(self, role: str, *rights: str) -> str:
        """The database, for a new role with these rights only."""
        self.source.execute(f"DROP ROLE IF EXISTS {role}".encode())
        self.source.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{_PASSWORD}'".encode())
        for right in rights:
            self.source.execute(right.encode())
        return make_conninfo(self.conninfo, user=role, password=_PASSWORD)

    def close(self) -> None:
        slots = self.source.execute("SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'refused'").fetchone()
        self.source.close()
        assert slots == (0,), "a refused start has made a slot"


@pytest.fixture
def site(database: str, processes: Processes) -> Iterator[Site]:
    site = Site(database, processes)
    yield site
    site.close()


@pytest.fixture
def role(site: Site) -> Iterator[str]:
    yield "reader"
    site.source.execute("DROP OWNED BY reader")
    site.source.execute("DROP ROLE reader")


@pytest.mark.parametrize("command", ["run", "stream-only", "check"])
def test_wrong_settings_are_told_all_at_once(site: Site, command: str) -> None:
    site.write(flush_intervall="1s", flush_rows=0)
    said = site.refusal(command, code=2)
    assert "sink.flush_intervall" in said and "flush_interval" in said
    assert "sink.flush_rows" in said


@pytest.mark.parametrize("command", ["run", "stream-only", "check"])
def test_a_wrong_password(site: Site, command: str) -> None:
    site.write(conninfo=make_conninfo(site.conninfo, password=f"not {_PASSWORD}"))
    said = site.refusal(command)
    assert "password authentication failed" in said and "check `source.postgres`" in said


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_missing_table(site: Site, command: str) -> None:
    site.write(tables=("public.good", "public.missing"))
    said = site.refusal(command)
    assert "table public.missing does not exist" in said and "correct `tables`" in said


def test_a_table_without_a_key(site: Site) -> None:
    site.source.execute("CREATE TABLE keyless (a int)")
    site.write(tables=("public.good", "public.keyless"))
    said = site.refusal("run")
    assert "table public.keyless has no primary key" in said and "ADD PRIMARY KEY" in said


def test_a_role_that_may_not_replicate(site: Site, role: str) -> None:
    site.write(conninfo=site.conninfo_of(role, f"ALTER TABLE good OWNER TO {role}", _may_create(site, role)))
    said = site.refusal("run")
    assert "may not replicate" in said and "REPLICATION" in said


def test_a_role_that_may_not_read_or_publish_the_table(site: Site, role: str) -> None:
    site.write(conninfo=site.conninfo_of(role, f"ALTER ROLE {role} REPLICATION", _may_create(site, role)))
    said = site.refusal("run")
    assert f"user {role} may not read table public.good" in said and "GRANT SELECT" in said
    assert f"user {role} does not own public.good and may not publish" in said


def test_a_server_without_logical_wal(site: Site) -> None:
    # Not in pytest's folder: when root runs the tests, the server's OS user could not enter it.
    folder = Path(tempfile.mkdtemp(prefix="icestream-postgres-"))
    try:
        with EmbeddedPostgres(folder, settings={"wal_level": "replica", "fsync": "off"}) as server:
            with psycopg.connect(server.conninfo(), autocommit=True) as source:
                source.execute("CREATE TABLE good (id int PRIMARY KEY)")
            site.write(conninfo=server.conninfo(tcp=True))
            for command in ("run", "check"):
                said = site.refusal(command)
                assert "wal_level = replica" in said and "ALTER SYSTEM SET wal_level = 'logical'" in said
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _may_create(site: Site, role: str) -> str:
    return f"GRANT CREATE ON DATABASE {site.source.info.dbname} TO {role}"
