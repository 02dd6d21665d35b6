"""The facts that a real server gives, and what the preflight makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from icestream.config import load
from icestream.model.table import TableState
from icestream.sources.postgres.connection import connect
from icestream.verify.facts import SourceFacts, gather
from icestream.verify.preflight import Finding, Severity, preflight
from support.capturing import PUBLICATION, CaptureBench


def facts_of(bench: CaptureBench, tables: str = "public.*", conninfo: str | None = None) -> SourceFacts:
    environ = {**bench.environ(tables), "POSTGRES_URL": conninfo or bench.conninfo}
    settings = load(None, environ, {}).settings
    with connect(settings.source.postgres.conninfo()) as conn:
        return gather(conn, settings)


def errors_of(bench: CaptureBench, tables: str = "public.*", conninfo: str | None = None) -> list[Finding]:
    found = preflight(facts_of(bench, tables, conninfo))
    return [finding for finding in found if finding.severity is Severity.ERROR]


def test_a_fit_source_passes_and_nothing_is_left_behind(bench: CaptureBench) -> None:
    bench.execute("CREATE TABLE t (id int PRIMARY KEY)")
    assert errors_of(bench) == []
    assert bench.rows("SELECT FROM pg_publication") == []
    assert bench.rows(f"SELECT FROM pg_replication_slots WHERE slot_name = '{bench.slot}'") == []


def test_every_unfit_table_is_found_at_once(bench: CaptureBench) -> None:
    bench.execute(
        "CREATE TABLE keyless (v text)",
        "CREATE UNLOGGED TABLE volatile (id int PRIMARY KEY)",
        "CREATE TABLE silent (id int PRIMARY KEY)",
        "ALTER TABLE silent REPLICA IDENTITY NOTHING",
        "CREATE TABLE swapped (id int PRIMARY KEY DEFERRABLE)",
        "CREATE TABLE fine (id int PRIMARY KEY)",
        "CREATE VIEW shown AS SELECT 1 AS id",
        "CREATE TABLE roots (id int PRIMARY KEY) PARTITION BY LIST (id)",
        "CREATE TABLE leaf PARTITION OF roots FOR VALUES IN (1)",
        "ALTER TABLE leaf REPLICA IDENTITY FULL",
    )
    found = errors_of(bench, "public.*,public.shown,public.nowhere")
    named = sorted(name for finding in found for name in finding.what.replace(":", " ").split() if "public." in name)
    assert named == [
        "public.keyless",
        "public.nowhere",
        "public.roots",
        "public.shown",
        "public.silent",
        "public.swapped",
        "public.volatile",
    ]


def test_the_statements_of_the_hints_make_a_table_fit(bench: CaptureBench) -> None:
    bench.execute(
        'CREATE TABLE "Silent One" (id int PRIMARY KEY)',
        'ALTER TABLE "Silent One" REPLICA IDENTITY NOTHING',
        "CREATE UNLOGGED TABLE volatile (id int PRIMARY KEY)",
    )
    for finding in errors_of(bench):
        assert finding.hint
        bench.execute(finding.hint.split("`")[1])
    assert errors_of(bench) == []


def test_a_pattern_means_tables_and_not_partitions_views_or_our_own_state(bench: CaptureBench) -> None:
    bench.execute(
        "CREATE TABLE roots (id int PRIMARY KEY) PARTITION BY LIST (id)",
        "CREATE TABLE leaf PARTITION OF roots FOR VALUES IN (1)",
        "CREATE VIEW shown AS SELECT 1 AS id",
        "CREATE SCHEMA other",
        "CREATE TABLE other.t (id int PRIMARY KEY)",
    )
    names = [str(facts.choice.name) for facts in facts_of(bench, "*.*").tables]
    assert names == ["other.t", "public.roots"]


@pytest.fixture
def plain_role(bench: CaptureBench) -> str:
    name = bench.slot + "_reader"
    bench.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'p'")
    return name


def test_a_role_without_rights_is_told_each_of_them(bench: CaptureBench, plain_role: str) -> None:
    bench.execute(
        "CREATE TABLE guarded (id int PRIMARY KEY)",
        "ALTER TABLE guarded ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE guarded FORCE ROW LEVEL SECURITY",
    )
    as_reader = make_conninfo(bench.conninfo, user=plain_role, password="p")
    hints = " ".join(finding.hint or "" for finding in errors_of(bench, conninfo=as_reader))
    for words in ("REPLICATION", "GRANT SELECT ON public.guarded", "BYPASSRLS", "GRANT CREATE ON DATABASE", "owner"):
        assert words in hints
    bench.execute(
        f"ALTER ROLE {plain_role} REPLICATION BYPASSRLS",
        f"GRANT SELECT ON guarded TO {plain_role}",
        f"CREATE PUBLICATION {PUBLICATION} FOR TABLE guarded",
    )
    assert errors_of(bench, conninfo=as_reader) == []
    bench.execute(f"DROP OWNED BY {plain_role}", f"DROP ROLE {plain_role}")


def test_a_foreign_publication_that_lacks_a_table_is_told_the_statement(bench: CaptureBench) -> None:
    bench.execute("CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
    bench.execute(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE a")
    (finding,) = errors_of(bench)
    assert finding.hint
    bench.execute(finding.hint.split("`")[1])
    assert errors_of(bench) == []


@pytest.mark.parametrize("part", ["a WHERE (id > 5)", "a (id)"], ids=["row filter", "column list"])
def test_a_foreign_publication_that_holds_something_back_is_found_out(bench: CaptureBench, part: str) -> None:
    bench.execute("CREATE TABLE a (id int PRIMARY KEY, v text, w int GENERATED ALWAYS AS (id) STORED)")
    bench.execute(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {part}")
    (finding,) = errors_of(bench)
    assert "public.a" in finding.what and finding.hint
    with bench.running() as running:
        assert "public.a" in str(running.failure())
    bench.execute(*finding.hint.split("`")[1:4:2])
    assert errors_of(bench) == []


def test_a_filter_that_was_put_into_our_publication_parks_the_table(bench: CaptureBench) -> None:
    bench.execute("CREATE TABLE a (id int PRIMARY KEY, v text)")
    with bench.running() as running:
        bench.catch_up(running)
        bench.tables.complete_copy("public.a", position=bench.wal_end(), rows=0)
    bench.execute(f"ALTER PUBLICATION {PUBLICATION} SET TABLE a WHERE (id > 5)")
    with bench.running() as running:
        bench.catch_up(running)
    (row,) = bench.tables.all()
    assert row.state is TableState.PARKED and row.reason and "not whole" in row.reason
    (publication,) = bench.rows(f"SELECT rowfilter FROM pg_publication_tables WHERE pubname = '{PUBLICATION}'")
    assert publication == (None,)


def test_two_schemas_in_one_namespace_are_refused(bench: CaptureBench) -> None:
    bench.execute(
        "CREATE SCHEMA other", "CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE other.t (id int PRIMARY KEY)"
    )
    settings = load(None, {**bench.environ("public.*,other.*"), "NAMESPACE": "lake"}, {}).settings
    with connect(bench.conninfo) as conn:
        found = preflight(gather(conn, settings))
    assert any("would both become lake.t" in finding.what for finding in found)


def test_columns_of_the_settings_are_compared_with_the_catalog(bench: CaptureBench, tmp_path: Path) -> None:
    bench.execute(
        "CREATE DOMAIN email AS varchar(200)",
        "CREATE TABLE t (id serial PRIMARY KEY, mail email, total numeric(10, 2), tags text[])",
    )
    file = tmp_path / "icestream.yaml"
    named = {"id": "int8", "mail": "text", "total": "decimal", "tags": "text", "gone": "bool"}
    columns = ", ".join(f"{{name: {name}, pg_type: {kind}, nullable: true}}" for name, kind in named.items())
    file.write_text(f"tables: [{{name: public.t, columns: [{columns}]}}]")
    settings = load(file, {name: value for name, value in bench.environ("").items() if name != "TABLES"}).settings
    with connect(settings.source.postgres.conninfo()) as conn:
        found = preflight(gather(conn, settings))
    assert [finding.what for finding in found if finding.severity is Severity.ERROR] == [
        "column id of table public.t is integer, and `columns` says int8",
        "column tags of table public.t is text[], and `columns` says text",
        "table public.t has no column gone (bool), which `columns` names",
    ]
