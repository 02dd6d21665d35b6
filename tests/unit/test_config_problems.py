from __future__ import annotations

import re

import pytest

from icestream.config import load
from icestream.errors import SettingsError
from support.settings_texts import ENOUGH, load_text, problems_of, with_sections


def test_all_mistakes_are_reported_at_once_with_path_line_value_and_reason() -> None:
    problems = problems_of(
        """
        tables:
          - name: public.orders
          - name: orders
          - name: public.orders
          - {}
        source:
          mode: query
          postgres:
            host: h
            port: 99999
            database: d
        sink:
          warehouse: /lake
          flush_intervall: 10s
          flush_rows: many
          write_mode: equalty
          catalog_auth: beerer
        """
    )
    assert problems == [
        "tables[1].name = 'orders' (line 4): must be of the form schema.table; patterns such as public.* are taken too",
        "source.postgres.port = '99999' (line 11): must be a port number from 1 to 65535",
        "sink.catalog_auth = 'beerer' (line 18): must be one of none, bearer, oauth2, sigv4; did you mean bearer?",
        "sink.write_mode = 'equalty' (line 17): must be one of merge, copy-on-write, append, equality; did you mean "
        "equality?",
        "sink.flush_rows = 'many' (line 16): must be a whole number",
        "sink.flush_intervall = '10s' (line 15): unknown key; did you mean flush_interval?",
        "tables[2].name = 'public.orders' (line 5): is already in the list",
        "tables[3].name (line 6): is required, of the form schema.table",
        "source.mode = 'query' (line 8): polling is not part of this version; use logical",
        "source.postgres.user (line 9): is required; set it, or source.postgres.url "
        "(variables POSTGRES_USER, POSTGRES_URL)",
    ]


def test_a_misspelt_key_beside_the_right_one_hides_no_mistake_in_it() -> None:
    text = with_sections(
        table="skip_snapshot: maybe", postgres="hots: x", sink="flush_rows: many\nflush_row: 7", rest="tabels: []"
    )
    assert [problem.split(": ")[0] for problem in problems_of(text)] == [
        "tables[0].skip_snapshot = 'maybe' (line 3)",
        "source.postgres.hots = 'x' (line 10)",
        "sink.flush_rows = 'many' (line 14)",
        "sink.flush_row = '7' (line 15)",
        "tabels (line 16)",
    ]


def test_mistakes_between_keys_are_told_beside_a_misspelt_one() -> None:
    text = with_sections(tables="- name: public.orders", rest="tabels: []")
    assert [problem.split(": ")[1] for problem in problems_of(text)] == [
        "unknown key; did you mean tables?",
        "is already in the list",
    ]


def test_the_error_reads_as_a_list_and_names_the_next_command() -> None:
    with pytest.raises(SettingsError) as caught:
        load(None, {**ENOUGH, "MODE": "fast", "POSTGRES_PORT": "x"})
    assert str(caught.value) == (
        "2 settings are wrong:\n"
        "  - source.mode = 'fast' (MODE): must be one of logical, query\n"
        "  - source.postgres.port = 'x' (POSTGRES_PORT): must be a whole number"
    )
    assert caught.value.hint is not None
    assert "icestream config reference" in caught.value.hint


def test_nothing_at_all_says_what_is_required() -> None:
    with pytest.raises(SettingsError) as caught:
        load(None, {})
    paths = [problem.partition(":")[0] for problem in caught.value.problems]
    assert paths == [
        "tables",
        "source.postgres.host",
        "source.postgres.database",
        "source.postgres.user",
        "sink.warehouse",
    ]


def test_a_flag_is_named_as_the_origin() -> None:
    with pytest.raises(SettingsError, match=r"source\.mode = 'fast' \(--mode\)"):
        load(None, ENOUGH, {"source.mode": "fast"})


@pytest.mark.parametrize(
    ("sections", "path", "advice"),
    [
        ({"postgres": "hots: x"}, "source.postgres.hots", "did you mean host?"),
        ({"postgres": "passwordfile: x"}, "source.postgres.passwordfile", "did you mean password_file?"),
        ({"postgres": "uri: x"}, "source.postgres.uri", "did you mean url?"),
        ({"sink": "flush-interval: 1s"}, "sink.flush-interval", "did you mean flush_interval?"),
        ({"sink": "slot_name: x"}, "sink.slot_name", "a key of this name belongs to source.logical"),
        ({"sink": "snapshot_only: true"}, "sink.snapshot_only", "a key of this name belongs to the top level"),
        ({"rest": "logical: {}"}, "logical", "a key of this name belongs to source"),
        ({"rest": "frobnicate: 1"}, "frobnicate", "the keys here are tables, source, sink,"),
        ({"sink": "xyz: 1"}, "sink.xyz", "the keys here are catalog_name, catalog, catalog_uri,"),
        ({"postgres": "dbname: x"}, "source.postgres.dbname", "did you mean database?"),
        ({"postgres": "db: x"}, "source.postgres.db", "did you mean database?"),
        ({"postgres": "username: x"}, "source.postgres.username", "did you mean user?"),
        ({"postgres": "pass: x"}, "source.postgres.pass", "did you mean password?"),
        ({"table": "pk: [id]"}, "tables[0].pk", "did you mean primary_key?"),
        ({"table": "keys: [id]"}, "tables[0].keys", "did you mean primary_key?"),
        ({"sink": "bucket: s3://b"}, "sink.bucket", "did you mean warehouse?"),
        ({"rest": "sparkk: {}"}, "sparkk", "did you mean spark?"),
        ({"rest": "spark: {confs: {}}"}, "spark.confs", "did you mean conf?"),
        ({"table": "iceberg: {partitions: []}"}, "tables[0].iceberg.partitions", "did you mean partition?"),
        ({"rest": "state: {grupo:}"}, "state.grupo", "did you mean group?"),
    ],
)
def test_unknown_keys_are_refused_with_the_nearest_valid_one(sections: dict[str, str], path: str, advice: str) -> None:
    (problem,) = problems_of(with_sections(**sections))
    assert re.match(re.escape(path) + r"( = '.*')? \(line ", problem)
    assert f": unknown key; {advice}" in problem


@pytest.mark.parametrize(
    ("sections", "shown"),
    [
        ({"sink": "credential_mode: statik"}, "sink.credential_mode = 'statik' (line"),
        ({"sink": "flushes: 10"}, "sink.flushes = '10' (line"),
        ({"postgres": "passwordd: 10"}, "source.postgres.passwordd (line"),
        ({"postgres": "dsn: postgresql://u:p@h"}, "source.postgres.dsn (line"),
        ({"sink": "api_key: 10"}, "sink.api_key (line"),
    ],
)
def test_values_are_shown_unless_the_name_looks_secret(sections: dict[str, str], shown: str) -> None:
    assert shown in problems_of(with_sections(**sections))[0]


def test_an_unknown_parameter_of_a_url_is_named_but_never_a_part_of_the_password() -> None:
    known = "which libpq does not know"
    for url, reason in (
        ("postgresql://u:p@h/d?sslmod=require", f"has the parameter sslmod, {known}; did you mean sslmode?"),
        ("postgresql://u:p@h/d?zzz=1&yyy=2", f"has the parameter zzz, {known}; has the parameter yyy, {known}"),
        ("postgresql://u:my?word=x@h/d?zzz=1", "must be a PostgreSQL URL such as"),
    ):
        assert reason in problems_of(with_sections(rest=f"state: {{postgres_url: '{url}'}}"))[0]
        (problem,) = problems_of("sink: {warehouse: /lake}", {**ENOUGH, "POSTGRES_URL": url})
        assert reason in problem and "word" not in problem.replace("password", "")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("sslmode=bogus", "has an sslmode that is none of disable, allow, prefer, require, verify-ca, verify-full"),
        ("ssl_min_protocol_version=foo", "has an ssl_min_protocol_version that is none of TLSv1, TLSv1.1, "),
        ("connect_timeout=soon", "has a connect_timeout that is not a whole number"),
        ("keepalives_idle=x", "has a keepalives_idle that is not a whole number"),
        ("sslrootcert=/nowhere.pem", "has an sslrootcert that is not a file that can be read here"),
        ("port=notaport", "has a port that is not a number from 1 to 65535"),
        ("host=a,b&port=1,99999", "has a port that is not a number from 1 to 65535"),
    ],
)
def test_the_address_of_the_state_is_checked_parameter_by_parameter(query: str, reason: str) -> None:
    url = f"postgresql://u:s3cr3t@/d?host=h&{query}"
    (problem,) = problems_of(with_sections(), {"STATE_POSTGRES_URL": url})
    assert problem.startswith("state.postgres_url (STATE_POSTGRES_URL): ") and reason in problem
    assert "s3cr3t" not in problem


def test_everything_that_libpq_takes_is_taken_for_the_state() -> None:
    url = "postgresql://u@a,b:5433/d?sslmode=verify-full&sslrootcert=system&ssl_min_protocol_version=tlsv1.2"
    assert load_text(with_sections(), {"STATE_POSTGRES_URL": url}).settings.state_conninfo() == url


def test_a_secret_file_that_cannot_be_read_has_no_consequences() -> None:
    environ = {**ENOUGH, "POSTGRES_URL": "", "POSTGRES_URL_FILE": "/nowhere"}
    (problem,) = problems_of("sink: {}", environ)
    assert problem.startswith("source.postgres.url_file (POSTGRES_URL_FILE): the file /nowhere can't be read")


def test_all_wrong_parameters_are_named() -> None:
    (problem,) = problems_of(with_sections(postgres="parameters: {frob: 1, nicate: 2, sslmode: x}"))
    assert "sets sslmode, which is not taken here" in problem
    assert "sets frob, nicate, which libpq does not know" in problem


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ({"table": "skip_snapshot: yes"}, "'yes' (line 3): must be true or false"),
        ({"table": "skip_snapshot: 2"}, "'2' (line 3): must be true or false"),
        ({"table": "skip_snapshot: []"}, "must be true or false"),
        ({"table": "primary_key: id"}, "'id' (line 3): must be a list"),
        ({"table": "primary_key: [[id]]"}, "primary_key[0] (line 3): must be text, not a list"),
        ({"table": "primary_key: [id, id]"}, "names the column 'id' twice"),
        ({"table": "exclude: [public.x]"}, "has a meaning only where `name` is a pattern"),
        ({"table": "iceberg: {partition: [days(ts)]}"}, "unknown transform 'days'"),
        ({"table": "iceberg: {partition: [day(ts), hour(ts)]}"}, "partitions ts by time twice"),
        ({"table": "iceberg: {partition: {}}"}, "must be a list, not a map"),
        ({"table": "iceberg: {name: a.b.c}"}, "must be `table` or `namespace.table`"),
        ({"table": "iceberg: {format_version: 1}"}, "must be 2 or 3"),
        ({"table": "iceberg: {sort_order: [days(ts) desc]}"}, "unknown transform 'days'"),
        ({"table": "iceberg: {sort_order: ['']}"}, "is not a sort expression"),
        ({"table": "iceberg: {location: ''}"}, "must be a folder or a URI"),
        (
            {"tables": "- name: sales.*\n  iceberg: {location: /lake/x}"},
            "would put the files of every table of a pattern into the same place",
        ),
        (
            {"table": "iceberg: {location: /lake/x}", "tables": "- name: public.y\n  iceberg: {location: /lake/x/}"},
            "tables[1].iceberg.location = '/lake/x' (line 5): is already that of public.orders",
        ),
        (
            {"table": "iceberg: {location: /lake/x}", "sink": "catalog: {type: hadoop}"},
            "a hadoop catalog puts every table below its warehouse",
        ),
        ({"table": "iceberg: {properties: {write.merge.mode: x}}"}, "use the key write_mode"),
        ({"table": "iceberg: {write_mode: marge}"}, "did you mean merge?"),
        ({"table": "iceberg: {properties: {icestream.cursor: x}}"}, "Icestream's own memory"),
        ({"table": "iceberg: {properties: {format-version: 2}}"}, "use the key format_version"),
        ({"table": "columns: [{name: a, pg_type: strnig}]"}, "is not a known PostgreSQL type"),
        ({"table": "columns: [{name: a}]"}, "tables[0].columns[0].pg_type (line 3): is required"),
        ({"table": "primary_key: [b]\ncolumns: [{name: a, pg_type: INT}]"}, "names 'b', which is not in `columns`"),
        ({"tables": "- public.x"}, "tables[1] = 'public.x' (line 4): must be a map of keys and values, not text"),
        ({"tables": "- name: .x"}, "must be of the form schema.table"),
        ({"tables": "- name: public.*\n  iceberg: {name: x}"}, "would give every table of a pattern the same name"),
        ({"postgres": "port: 0"}, "must be a port number"),
        ({"postgres": "port: 5432.0"}, "must be a whole number"),
        ({"postgres": "port: true"}, "must be a whole number"),
        ({"postgres": "port: 0x10"}, "must be a whole number"),
        ({"postgres": "sslmode: verify_full"}, "did you mean verify-full?"),
        ({"postgres": "sslrootcert: /nowhere/ca.pem"}, "is not a file that can be read here"),
        ({"postgres": "options: [a]"}, "must be text, not a list"),
        ({"postgres": "connect_timeout: 10"}, "write a number with a unit"),
        ({"postgres": "parameters: {frob: 1}"}, "sets frob, which libpq does not know"),
        ({"postgres": "parameters: {ssl_min_protocol_version: foo}"}, "has an ssl_min_protocol_version that is none"),
        ({"postgres": "parameters: {keepalives_idle: soon}"}, "has a keepalives_idle that is not a whole number"),
        ({"postgres": "parameters: {replication: database}"}, "sets replication, which is not taken here"),
        ({"postgres": "parameters: {sslmode: require}"}, "sets sslmode, which is not taken here"),
        ({"source": "logical: {slot_name: My-Slot}"}, "PostgreSQL allows no other slot name"),
        ({"source": "logical: {publication_name: ''}"}, "must be a PostgreSQL name"),
        ({"source": "logical: text"}, "must be a map of keys and values, not text"),
        ({"source": "logical: {standby_interval: 0s}"}, "must be at least 100ms"),
        ({"sink": "flush_interval: 99ms"}, "must be at least 100ms"),
        ({"sink": "flush_interval: 0s"}, "must be at least 100ms"),
        ({"sink": "flush_interval: -1s"}, "is not a duration"),
        ({"sink": "flush_interval: soon"}, "such as 500ms, 10s, 5m, 1h30m or PT5M"),
        ({"sink": "flush_interval: 1.5"}, "is not a duration"),
        ({"sink": "flush_interval: [1s]"}, "must be a duration"),
        ({"sink": "flush_rows: 0"}, "must be at least 1"),
        ({"sink": "flush_rows: -5"}, "must be at least 1"),
        ({"sink": "flush_bytes: -64mb"}, "is not a size"),
        ({"sink": "flush_bytes: 0"}, "must be at least 1"),
        ({"sink": "flush_bytes: big"}, "such as 64mb, 64MiB, 512kb or 67108864"),
        ({"sink": "materializer_concurrency: 0"}, "must be at least 1"),
        ({"sink": "materializer_target_file_size: huge"}, "is not a size"),
        ({"sink": "events_partition: day()"}, "names no column"),
        ({"sink": "target_file_size: -1"}, "is not a size"),
        ({"sink": "maintenance_retention: forever"}, "is not a duration"),
        ({"sink": "meta_enabled: maybe"}, "must be true or false"),
        ({"sink": "namespace: a.b"}, "must be a single level"),
        ({"sink": "publish: together"}, "is not part of this version; use per-table"),
        ({"sink": "format_version: 4"}, "must be 2 or 3"),
        ({"sink": "catalog_name: my-catalog"}, "letters, digits and underscores"),
        ({"sink": "catalog_name: spark_catalog"}, "built-in catalog"),
        ({"sink": "catalog: rest"}, "must be a map of property names and values"),
        ({"rest": "metrics_addr: 9090"}, "must be host:port or :port"),
        ({"rest": "metrics_addr: ':99999'"}, "must be host:port or :port"),
        ({"rest": "state: {postgres_url: 'http://x'}"}, "must be a PostgreSQL URL"),
        ({"rest": "state: {coordinator_schema: PG_x}"}, "must not start with pg_"),
        ({"rest": "state: {group: ' '}"}, "must not be empty"),
        ({"rest": "state: {consumer_ttl: 10ms}"}, "must be at least 1s"),
        ({"rest": "spark: {packages: {a: b}}"}, "must be a list"),
        ({"rest": "spark: {conf: [a]}"}, "must be a map"),
        ({"rest": "spark: {conf: {a: [b]}}"}, "spark.conf.a (line 15): must be text, not a list"),
        ({"rest": "spark: {conf: {a: }}"}, "must be text, not empty"),
        ({"rest": "spark: {master: ''}"}, "must not be empty"),
        ({"rest": "spark: {master: locall}"}, "is no Spark master"),
        ({"rest": "spark: {master: 'spark://host'}"}, "is no Spark master"),
        ({"rest": "spark: {packages: [a:b:1, a:b, c]}"}, "a:b, c: a package is written group:artifact:version"),
        ({"rest": "spark: {conf: {spark.jars.packages: 'a:b'}}"}, "a:b: a package is written group:artifact:version"),
        ({"sink": "catalog: {type: jdbc, uri: postgresql://h/d}"}, "must be a JDBC address"),
        ({"sink": "catalog: {type: jdbc}"}, "must be a JDBC address"),
        ({"rest": "metrics_addr: !!binary aGk="}, "has the YAML tag !!binary"),
        ({"rest": "? [a, b]\n: c"}, "has a key that is no text, in line 15"),
    ],
)
def test_wrong_values_say_what_is_wrong(sections: dict[str, str], reason: str) -> None:
    problems = problems_of(with_sections(**sections))
    assert len(problems) == 1
    assert reason in problems[0]


def test_interpolation_problems_name_the_path_and_the_variable() -> None:
    text = with_sections(postgres="port: ${PG_PORT}\noptions: ${1x}\nsslcert: '${OPEN'\nsslkey: ${A:-${B}}")
    problems = problems_of(text)
    assert problems[0] == (
        "source.postgres.port (line 10): the variable PG_PORT is not set; set it, or write ${PG_PORT:-default}"
    )
    assert [problem.partition(":")[0] for problem in problems[1:]] == [
        "source.postgres.options (line 11)",
        "source.postgres.sslcert (line 12)",
        "source.postgres.sslkey (line 13)",
    ]
    assert all("write $$ for a plain $" in problem for problem in problems[1:])


def test_repeated_keys_are_refused_at_every_depth() -> None:
    problems = problems_of(with_sections(postgres="host: other", sink="warehouse: /a\nwarehouse: /b"))
    assert problems == [
        "source.postgres.host (line 7): appears twice, in line 7 and in line 10",
        "sink.warehouse (line 14): appears twice, in line 14 and in line 15",
    ]


def test_an_alias_to_itself_is_refused() -> None:
    assert any("refers to itself" in problem for problem in problems_of("tables: &a [*a]\n", ENOUGH))


def test_a_wrong_url_is_not_reported_again_as_missing_keys() -> None:
    with pytest.raises(SettingsError) as caught:
        load(None, {**ENOUGH, "POSTGRES_URL": "mysql://u:hunter2@h/d"})
    assert list(caught.value.problems) == [
        "source.postgres.url (POSTGRES_URL): must be a PostgreSQL URL such as postgresql://user:password@host:5432/database"
    ]


def test_a_section_that_is_none_is_reported_although_variables_would_fill_it() -> None:
    assert problems_of("source: x\nsink: []\nstate: {postgres_url:}", ENOUGH) == [
        "source (line 1): must be a map of keys and values, not text",
        "sink (line 2): must be a map of keys and values, not a list",
    ]


def test_several_servers_are_refused() -> None:
    with pytest.raises(SettingsError, match="a replication slot lives on one"):
        load(None, {**ENOUGH, "POSTGRES_URL": "postgresql://u@a,b/d"})


def test_two_tables_with_one_target_are_refused() -> None:
    problems = problems_of(with_sections(tables="- name: sales.orders", sink="namespace: shop"))
    assert problems == [
        "tables[1].name = 'sales.orders' (line 4): would be written to the Iceberg table shop.orders, "
        "and so would public.orders; set `iceberg.name` for one"
    ]
    renamed = "- name: public.other\n  iceberg: {name: public.orders}"
    assert "public.orders, and so would public.orders" in problems_of(with_sections(tables=renamed))[0]


@pytest.mark.parametrize("text", ["tables: " + "[" * 3000 + "]" * 3000, "tables: " + "{a: " * 3000 + "}" * 3000])
def test_a_file_that_is_nested_without_end_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="is nested too deeply to be read"):
        load_text(text)


def test_a_key_that_is_nested_too_deeply_is_named() -> None:
    (problem,) = problems_of(with_sections(rest="state: " + "[" * 60 + "]" * 60))
    assert problem.startswith("state (line 15): is nested too deeply")
