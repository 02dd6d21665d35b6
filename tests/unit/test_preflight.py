"""Facts in, findings out: what stops a start, what is only said, and the statement that helps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icestream.capture.selection import Choice
from icestream.config.tables import ColumnSettings
from icestream.errors import SourceError
from icestream.model.table import TableName, Target, WriteMode
from icestream.sources.postgres.catalog import CatalogColumn, SourceTable
from icestream.sources.postgres.publication import Publication, PublishedTable
from icestream.sources.postgres.slot import Slot
from icestream.verify.facts import Role, Server, SourceFacts, TableFacts
from icestream.verify.preflight import Finding, Severity, preflight

ORDERS = TableName("public", "orders")
SERVER = Server(
    version_num=180000,
    version="18.1",
    wal_level="logical",
    encoding="UTF8",
    in_recovery=False,
    max_slots=10,
    used_slots=0,
    max_senders=10,
    used_senders=0,
    slot_wal_limit_mb=-1,
    behind_pooler=False,
)
TABLE = SourceTable(
    oid=1,
    name=ORDERS,
    kind="r",
    persistence="p",
    identity="d",
    is_partition=False,
    can_select=True,
    is_owner=True,
    row_security=False,
    columns=(CatalogColumn("id", 23, -1, True, False), CatalogColumn("v", 25, -1, False, False)),
    primary_key=("id",),
    primary_key_deferrable=False,
    identity_index=(),
)
SLOT = Slot("shop", "pgoutput", "db", False, None, None, None, "reserved", None)
PUBLICATION = Publication(
    *("pub", 1, False, True, True, "made by Icestream for pipeline shop", True, frozenset({ORDERS})),
    tables=(PublishedTable(1, ORDERS, False, frozenset({1})),),
)


def target(name: str, *primary_key: str) -> Target:
    return Target("lake", name, primary_key=primary_key)


def chosen(table: SourceTable | None, *primary_key: str) -> TableFacts:
    return TableFacts(Choice(ORDERS, target("orders", *primary_key), table.oid if table else None), table)


FACTS = SourceFacts(
    server=SERVER,
    role=Role("reader", may_create=True),
    database="db",
    pipeline="shop",
    slot_name="shop",
    publication_name="pub",
    state_in_source=True,
    tables=(chosen(TABLE),),
)


def with_server(**changes: object) -> SourceFacts:
    return replace(FACTS, server=replace(SERVER, **changes))  # type: ignore[arg-type]


def with_table(*primary_key: str, **changes: object) -> SourceFacts:
    return replace(FACTS, tables=(chosen(replace(TABLE, **changes), *primary_key),))  # type: ignore[arg-type]


def the_error(facts: SourceFacts) -> Finding:
    (finding,) = preflight(facts)
    assert finding.severity is Severity.ERROR
    return finding


def test_a_source_that_is_fit_has_no_findings() -> None:
    assert preflight(FACTS) == []
    assert preflight(replace(FACTS, slot=SLOT, publication=PUBLICATION)) == []


def test_an_old_server_is_refused_politely_and_asked_nothing_more() -> None:
    finding = the_error(replace(with_server(version_num=130013, version="13.13", wal_level="replica"), tables=()))
    assert "13.13" in finding.what and "14" in finding.what


@pytest.mark.parametrize(
    ("facts", "what", "hint"),
    [
        (with_server(wal_level="replica"), "wal_level = replica", "ALTER SYSTEM SET wal_level = 'logical'"),
        (with_server(behind_pooler=True), "PgBouncer", "itself"),
        (with_server(used_slots=10), "all 10 replication slots", "max_replication_slots"),
        (with_server(used_senders=10), "all 10 WAL senders", "max_wal_senders"),
        (replace(FACTS, role=Role("reader", True, SourceError("no", hint="grant it"))), "no", "grant it"),
        (replace(FACTS, role=Role("reader", False)), "may not create publications", "GRANT CREATE ON DATABASE db"),
        (replace(FACTS, tables=()), "no table of the source matches", "patterns"),
        (replace(FACTS, slot=replace(SLOT, plugin="wal2json")), "plugin wal2json", "slot_name"),
        (replace(FACTS, slot=replace(SLOT, database="other")), "database other", "slot_name"),
        (
            replace(FACTS, publication=replace(PUBLICATION, comment=""), publication_statement="ALTER PUBLICATION x"),
            "not made by Icestream",
            "ALTER PUBLICATION x",
        ),
        (replace(FACTS, pipeline="sho", publication=PUBLICATION), "belongs to pipeline 'shop'", "publication_name"),
        (replace(FACTS, publication=replace(PUBLICATION, may_alter=False)), "belongs to another user", "owner"),
    ],
)
def test_a_source_that_is_not_fit_is_told_what_to_do(facts: SourceFacts, what: str, hint: str) -> None:
    finding = the_error(facts)
    assert what in finding.what
    assert finding.hint and hint in finding.hint


@pytest.mark.parametrize(
    ("facts", "what", "hint"),
    [
        (replace(FACTS, tables=(chosen(None),)), "does not exist", "correct `tables`"),
        (with_table(kind="v"), "is a view", "beneath"),
        (with_table(kind="m"), "is a materialized view", "beneath"),
        (with_table(kind="f"), "is a foreign table", "beneath"),
        (with_table(persistence="u"), "unlogged", "SET LOGGED"),
        (with_table(can_select=False), "may not read", "GRANT SELECT ON public.orders TO reader"),
        (with_table(row_security=True), "row-level security", "BYPASSRLS"),
        (with_table(is_owner=False), "does not own public.orders", "owner"),
        (with_table(primary_key=()), "no primary key", "ALTER TABLE public.orders ADD PRIMARY KEY"),
        (with_table(identity="n"), "NOTHING", "REPLICA IDENTITY DEFAULT"),
        (with_table(identity="n", primary_key=()), "NOTHING", "REPLICA IDENTITY FULL"),
        (with_table(identity="i"), "index", "REPLICA IDENTITY DEFAULT"),
        (with_table(identity="f", primary_key=()), "cannot be told apart", "`primary_key`"),
        (with_table(primary_key_deferrable=True), "deferrable", "REPLICA IDENTITY FULL"),
        (with_table(kind="p", leaf_identities=("d", "f")), "partitions", "REPLICA IDENTITY"),
        (with_table("v"), "`primary_key` says (v)", "ALTER TABLE public.orders REPLICA IDENTITY FULL"),
        (with_table("id", "v"), "by (id)", "USING INDEX"),
        (with_table("id", identity="i", identity_index=("v",)), "by (v)", "USING INDEX"),
    ],
)
def test_a_table_that_is_not_fit_is_told_the_statement(facts: SourceFacts, what: str, hint: str) -> None:
    finding = the_error(facts)
    assert what in str(finding)
    assert finding.hint and hint in finding.hint
    assert finding.why or "does not exist" in finding.what


@pytest.mark.parametrize(
    "facts",
    [
        with_table(identity="f"),
        with_table("v", identity="f", primary_key=()),
        with_table("id"),
        with_table("v", identity="i", identity_index=("v",)),
        with_table(identity="i", identity_index=("v",), primary_key=()),
        with_table(kind="p", leaf_identities=("d",)),
        replace(with_table(is_owner=False), publication=PUBLICATION),
        replace(with_server(used_slots=9), slot=SLOT),
    ],
)
def test_what_is_unusual_but_works_is_let_through(facts: SourceFacts) -> None:
    assert [finding for finding in preflight(facts) if finding.severity is Severity.ERROR] == []


def test_a_configured_key_has_to_exist() -> None:
    assert "has no column nope" in the_error(with_table("nope", identity="f")).what


COLUMNS = (
    CatalogColumn("id", 23, -1, True, False),
    CatalogColumn("at", 1184, -1, False, False),
    CatalogColumn("day", 1082, -1, False, False),
    CatalogColumn("score", 701, -1, False, False),
    CatalogColumn("at_year", 23, -1, False, False),
    CatalogColumn("total", 23, -1, False, True),
)


def partitioned(expression: str) -> SourceFacts:
    choice = Choice(ORDERS, Target("lake", "orders", partition=(expression,)), 1)
    return replace(FACTS, tables=(TableFacts(choice, replace(TABLE, columns=COLUMNS)),))


@pytest.mark.parametrize(
    ("expression", "what", "hint"),
    [
        ("nope", "has no column nope", "id, at, day"),
        ("total", "has no column total", "id, at, day"),
        ("day(id)", "becomes int, which day does not take", "identity, bucket, truncate"),
        ("hour(day)", "becomes date", "year, month, day"),
        ("bucket[4](score)", "becomes double", "identity"),
        ("truncate[4](at)", "becomes timestamptz", "year, month, day, hour, bucket"),
        ("year(at)", "named at_year, as a column is", "another"),
    ],
)
def test_a_partition_that_iceberg_would_refuse_is_refused_at_the_start(expression: str, what: str, hint: str) -> None:
    finding = the_error(partitioned(expression))
    assert what in finding.what
    assert finding.hint and hint in finding.hint


@pytest.mark.parametrize("expression", ["score", "bucket[4](id)", "truncate[10](id)", "hour(at)", "month(day)"])
def test_a_partition_that_iceberg_takes_is_let_through(expression: str) -> None:
    assert preflight(partitioned(expression)) == []


def test_two_sources_of_one_target_are_refused() -> None:
    other = TableName("other", "orders")
    twin = TableFacts(Choice(other, target("orders"), 2), replace(TABLE, oid=2, name=other))
    finding = the_error(replace(FACTS, tables=(*FACTS.tables, twin)))
    assert "public.orders and other.orders would both become lake.orders" in finding.what


def test_a_standby_needs_a_state_elsewhere_and_a_publication_from_its_primary() -> None:
    standby = with_server(in_recovery=True, version_num=170000)
    assert len(preflight(standby)) == 2
    assert preflight(replace(standby, state_in_source=False, publication=PUBLICATION)) == []
    old = replace(with_server(in_recovery=True, version_num=150000), state_in_source=False, publication=PUBLICATION)
    assert "16" in str(the_error(old))


@pytest.mark.parametrize(
    "facts",
    [
        with_server(slot_wal_limit_mb=512),
        with_server(encoding="SQL_ASCII"),
        with_server(used_slots=9),
        replace(FACTS, clock_ahead_s=-7.0),
    ],
    ids=["limited WAL", "SQL_ASCII", "last slot", "clock"],
)
def test_what_someone_should_know_does_not_stop_a_start(facts: SourceFacts) -> None:
    (finding,) = preflight(facts)
    assert finding.severity is Severity.WARNING
    assert finding.hint and finding.why


def test_errors_come_first() -> None:
    facts = replace(FACTS, server=replace(SERVER, encoding="SQL_ASCII"), tables=(chosen(None),))
    assert [finding.severity for finding in preflight(facts)] == [Severity.ERROR, Severity.WARNING]


def test_names_are_quoted_where_sql_needs_it() -> None:
    odd = TableName("My Schema", 'or"ders')
    facts = TableFacts(Choice(odd, target("orders"), 1), replace(TABLE, name=odd, can_select=False))
    finding = the_error(replace(FACTS, tables=(facts,)))
    assert finding.hint and '"My Schema"."or""ders"' in finding.hint


def test_a_capture_that_starts_again_waits_for_a_free_wal_sender() -> None:
    (finding,) = preflight(replace(with_server(used_senders=10), slot=SLOT, publication=PUBLICATION))
    assert finding.severity is Severity.WARNING and "WAL senders" in finding.what


def with_mode(mode: WriteMode, table: SourceTable = TABLE, **target: object) -> SourceFacts:
    choice = Choice(ORDERS, Target("lake", "orders", write_mode=mode, **target), table.oid)  # type: ignore[arg-type]
    return replace(FACTS, tables=(TableFacts(choice, table),))


def test_a_table_without_a_key_is_told_the_three_ways_out() -> None:
    for identity in ("d", "n", "f"):
        hint = the_error(with_table(primary_key=(), identity=identity)).hint or ""
        for way in ("`primary_key`", "REPLICA IDENTITY USING INDEX", "write_mode: append"):
            assert way in hint


@pytest.mark.parametrize("identity", ["d", "n", "f", "i"])
def test_a_changelog_needs_no_key(identity: str) -> None:
    table = replace(TABLE, primary_key=(), identity=identity)
    findings = preflight(with_mode(WriteMode.APPEND, table))
    assert [finding.severity for finding in findings] == [Severity.WARNING] * (identity != "f")
    for finding in findings:
        assert "INSERTs and TRUNCATEs" in finding.what and "REPLICA IDENTITY FULL" in (finding.hint or "")


def test_a_changelog_takes_no_column_that_it_adds_itself() -> None:
    table = replace(TABLE, columns=(*TABLE.columns, CatalogColumn("_op", 25, -1, False, False)))
    assert "`write_mode: append` adds itself: _op" in the_error(with_mode(WriteMode.APPEND, table)).what
    assert preflight(with_mode(WriteMode.MERGE, table)) == []


def test_rows_are_not_deleted_by_a_key_of_floating_point_numbers() -> None:
    table = replace(TABLE, columns=(CatalogColumn("id", 701, -1, True, False), *TABLE.columns[1:]))
    assert "floating-point numbers (id)" in the_error(with_mode(WriteMode.EQUALITY, table)).what
    assert preflight(with_mode(WriteMode.MERGE, table)) == []


def test_columns_of_a_changelog_can_be_partitioned_and_sorted_by() -> None:
    assert preflight(with_mode(WriteMode.APPEND, partition=("day(_ts)",), sort_order=("_lsn", "_offset"))) == []
    assert "no column _ts" in the_error(with_mode(WriteMode.MERGE, partition=("day(_ts)",))).what


@pytest.mark.parametrize(
    ("expression", "what"), [("nothing desc", "no column nothing"), ("day(id)", "day does not take")]
)
def test_a_sort_order_that_iceberg_would_refuse_is_found(expression: str, what: str) -> None:
    finding = the_error(with_mode(WriteMode.MERGE, sort_order=(expression,)))
    assert what in finding.what and "iceberg.sort_order" in finding.what


EXPECTED = (ColumnSettings(name="id", pg_type="integer"), ColumnSettings(name="v", pg_type="varchar"))


def columns_findings(*expected: ColumnSettings) -> list[Finding]:
    types = {"id": "integer", "v": "text"}
    table = replace(TABLE, columns=tuple(replace(column, type_name=types[column.name]) for column in TABLE.columns))
    return preflight(replace(FACTS, tables=(replace(chosen(table), columns=expected),)))


def test_columns_that_are_as_the_settings_say_are_fine() -> None:
    assert columns_findings() == columns_findings(*EXPECTED) == []


def test_a_column_that_is_not_there_is_named_with_those_that_are() -> None:
    (finding,) = columns_findings(*EXPECTED, ColumnSettings(name="total", pg_type="numeric"))
    assert finding.severity is Severity.ERROR
    assert finding.what == "table public.orders has no column total (numeric), which `columns` names"
    assert finding.hint and finding.hint.endswith("its columns are id, v")


def test_a_column_of_another_type_is_named_with_both_types() -> None:
    (finding,) = columns_findings(EXPECTED[0], ColumnSettings(name="v", pg_type="int4", nullable=True))
    assert finding.severity is Severity.ERROR
    assert finding.what == "column v of table public.orders is text, and `columns` says int4"


def test_columns_beyond_the_settings_and_unexpected_nulls_are_told() -> None:
    (beyond,) = columns_findings(EXPECTED[0])
    (nulls,) = columns_findings(EXPECTED[0], ColumnSettings(name="v", pg_type="text", nullable=False))
    assert {beyond.severity, nulls.severity} == {Severity.WARNING}
    assert "does not name: v" in beyond.what and "may hold NULL" in nulls.what
