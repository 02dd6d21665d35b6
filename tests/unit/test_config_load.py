from __future__ import annotations

from pathlib import Path

import pytest

from icestream.config import load
from icestream.errors import SettingsError
from support.settings_texts import ENOUGH, load_text, settings_of, with_sections


def test_the_environment_alone_is_enough() -> None:
    settings = load(None, ENOUGH).settings
    assert [entry.name for entry in settings.tables] == ["public.orders"]
    assert (settings.source.postgres.host, settings.source.postgres.port) == ("db.example", 5433)
    assert settings.sink.warehouse == "/lake"
    assert settings.sink.staging_root == "/lake/staged"
    assert settings.pipeline == "pg2iceberg_slot"


def test_defaults_are_the_settled_ones() -> None:
    settings = load(None, ENOUGH).settings
    sink = settings.sink
    assert (sink.flush_interval, sink.flush_rows, sink.flush_bytes) == (1.0, 50_000, 64 * 1024**2)
    assert (sink.materializer_interval, sink.target_file_size) == (10.0, 128 * 1024**2)
    assert (sink.compaction_data_files, sink.compaction_delete_files) == (20, 10)
    assert (sink.maintenance_interval, sink.maintenance_retention, sink.maintenance_grace) == (3600, 604800, 86400)
    assert (settings.source.logical.standby_interval, settings.source.query.poll_interval) == (10, 30)
    assert settings.state.consumer_ttl == 30
    assert sink.materializer_concurrency >= 1
    assert settings.spark.master == "local[*]"


def test_flags_win_over_variables_and_variables_over_the_file() -> None:
    text = with_sections(
        source="logical: {slot_name: from_file, publication_name: from_file}", sink="namespace: from_file"
    )
    environ = {"SLOT_NAME": "from_env", "NAMESPACE": "from_env"}
    settings = load_text(text, environ, **{"source.logical.slot_name": "from_flag", "sink.namespace": None}).settings
    assert settings.source.logical.slot_name == "from_flag"
    assert settings.source.logical.publication_name == "from_file"
    assert settings.sink.namespace == "from_env"


def test_an_empty_variable_counts_as_not_set() -> None:
    assert settings_of(with_sections(sink="namespace: kept"), {"NAMESPACE": ""}).sink.namespace == "kept"


def test_every_documented_variable_sets_its_key() -> None:
    environ = {
        "POSTGRES_HOST": "h",
        "POSTGRES_PORT": "6000",
        "POSTGRES_DATABASE": "d",
        "POSTGRES_USER": "u",
        "POSTGRES_PASSWORD": "p",
        "POSTGRES_SSLMODE": "require",
        "TABLES": " public.a , public.b ,",
        "MODE": "logical",
        "SLOT_NAME": "s",
        "PUBLICATION_NAME": "p",
        "ICEBERG_CATALOG_URL": "http://c:8181",
        "CATALOG_AUTH": "bearer",
        "CATALOG_TOKEN": "t",
        "CREDENTIAL_MODE": "static",
        "WAREHOUSE": "s3://b/w",
        "NAMESPACE": "n",
        "S3_ENDPOINT": "http://s",
        "S3_ACCESS_KEY": "a",
        "S3_SECRET_KEY": "k",
        "S3_REGION": "r",
        "MATERIALIZER_WORKER_ID": "w1",
        "MAINTENANCE_RETENTION": "1h",
        "MAINTENANCE_INTERVAL": "2h",
        "MAINTENANCE_GRACE": "3h",
        "META_ENABLED": "true",
        "META_NAMESPACE": "m",
        "STATE_POSTGRES_URL": "postgresql://s/d",
        "COORDINATOR_SCHEMA": "coord",
        "METRICS_ADDR": ":9090",
        "SNAPSHOT_ONLY": "false",
        "AWS_REGION": "untouched",
    }
    loaded = load(None, environ)
    settings, sink = loaded.settings, loaded.settings.sink
    assert [entry.name for entry in settings.tables] == ["public.a", "public.b"]
    assert (settings.source.postgres.port, settings.source.postgres.sslmode) == (6000, "require")
    assert (sink.maintenance_retention, sink.maintenance_interval, sink.maintenance_grace) == (3600, 7200, 10800)
    assert (sink.materializer_worker_id, sink.meta_enabled, sink.meta_namespace) == ("w1", True, "m")
    assert settings.state_conninfo() == "postgresql://s/d"
    assert settings.state.coordinator_schema == "coord"
    assert settings.metrics_endpoint() == ("127.0.0.1", 9090)
    assert {notice.key for notice in loaded.notices} == {
        "sink.maintenance_retention",
        "sink.maintenance_interval",
        "sink.maintenance_grace",
        "sink.meta_enabled",
        "sink.meta_namespace",
    }


def test_tables_may_be_one_text() -> None:
    text = with_sections().replace("tables:\n  - name: public.orders", "tables: ${LIST}")
    assert [entry.name for entry in settings_of(text, {"LIST": "public.a, sales.*"}).tables] == ["public.a", "sales.*"]


def test_tables_variable_keeps_what_the_file_says_about_a_table() -> None:
    text = with_sections(table="primary_key: [a, b]", tables="- name: public.other")
    tables = settings_of(text, {"TABLES": "public.new,public.orders"}).tables
    assert [(entry.name, entry.primary_key) for entry in tables] == [("public.new", ()), ("public.orders", ("a", "b"))]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:p%40ss@h:1/d", {"user": "u", "password": "p@ss", "host": "h", "port": "1", "dbname": "d"}),
        ("postgres://u@[::1]:7/d", {"host": "::1", "port": "7"}),
        (
            "postgresql://u@h/d?sslmode=verify-full&connect_timeout=5",
            {"sslmode": "verify-full", "connect_timeout": "5"},
        ),
        ("postgresql:///d?host=/run/pg&user=u", {"host": "/run/pg", "user": "u"}),
        ("host=h dbname=d user=u password='a b'", {"password": "a b"}),
        ("postgresql://u@h/d?keepalives_idle=7&options=-c%20a%3Db", {"keepalives_idle": "7", "options": "-c a=b"}),
    ],
)
def test_a_url_reaches_libpq_whole(url: str, expected: dict[str, str]) -> None:
    from psycopg.conninfo import conninfo_to_dict

    conninfo = load(None, {**ENOUGH, "POSTGRES_URL": url}).settings.source.postgres.conninfo()
    assert expected.items() <= conninfo_to_dict(conninfo).items()


def test_keys_beside_a_url_win_but_a_url_in_a_variable_wins_over_the_file() -> None:
    text = with_sections(postgres="url: postgresql://x:y@z:9/w\npassword: own\n")
    assert settings_of(text).source.postgres.host == "h"
    assert settings_of(text).source.postgres.port == 9
    postgres = settings_of(text, {"POSTGRES_URL": "postgresql://new@elsewhere/w"}).source.postgres
    assert (postgres.host, postgres.user, postgres.database) == ("elsewhere", "new", "w")
    assert postgres.password is not None
    assert postgres.password.get_secret_value() == "own"


@pytest.mark.parametrize("password", ["with space", "quo'te", 'dou"ble', "back\\slash", "a=b", "ünï", "", "'", "${x}"])
def test_any_password_survives_the_connection_string(password: str) -> None:
    from psycopg.conninfo import conninfo_to_dict

    settings = load(None, {**ENOUGH, "POSTGRES_URL": "postgresql://u@h/d", "POSTGRES_PASSWORD": password}).settings
    parsed = conninfo_to_dict(settings.source.postgres.conninfo())
    assert parsed.get("password", "") == password
    assert (parsed["host"], parsed["user"], parsed["dbname"]) == ("h", "u", "d")


@pytest.mark.parametrize(("host", "expected"), [("::1", "::1"), ("'[::1]'", "::1"), ("/var/run/pg", "/var/run/pg")])
def test_hosts(host: str, expected: str) -> None:
    text = with_sections().replace("host: h\n", f"host: {host}\n")
    assert settings_of(text).source.postgres.host == expected


@pytest.mark.parametrize(
    ("written", "environ", "expected"),
    [
        ("${PG}", {"PG": "v"}, "v"),
        ("a${PG}b${PG}", {"PG": "v"}, "avbv"),
        ("${PG:-fallback}", {}, "fallback"),
        ("${PG:-fallback}", {"PG": ""}, "fallback"),
        ("${PG:-fallback}", {"PG": "v"}, "v"),
        ("'${PG:-}'", {}, ""),
        ("${PG}", {"PG": ""}, ""),
        ("${PG}", {"PG": "${OTHER}"}, "${OTHER}"),
        ("$$", {}, "$"),
        ("$${PG}", {"PG": "v"}, "${PG}"),
        ("$PG", {"PG": "v"}, "$PG"),
        ("${PG}", {"PG": "x\n  user: evil"}, "x\n  user: evil"),
        ("'${PG:-a:-b}'", {}, "a:-b"),
    ],
)
def test_interpolation(written: str, environ: dict[str, str], expected: str) -> None:
    settings = settings_of(with_sections(postgres=f"options: {written}"), environ)
    assert settings.source.postgres.options == expected
    assert settings.source.postgres.user == "u"


def test_numbers_flags_durations_and_sizes_may_be_interpolated() -> None:
    text = with_sections(
        table="skip_snapshot: ${SKIP}\n",
        postgres="port: ${PORT}\n",
        sink="flush_interval: ${EVERY:-250ms}\nflush_bytes: ${BYTES}\nflush_rows: ${ROWS:-}\n",
    )
    settings = settings_of(text, {"SKIP": "true", "PORT": "7000", "BYTES": "1mb"})
    assert settings.tables[0].skip_snapshot is True
    assert settings.source.postgres.port == 7000
    assert (settings.sink.flush_interval, settings.sink.flush_bytes, settings.sink.flush_rows) == (
        0.25,
        1024**2,
        50_000,
    )


def test_scalars_keep_the_text_they_were_written_as() -> None:
    text = with_sections(
        postgres="password: 0123\noptions: no\n",
        sink="catalog: {type: jdbc, uri: 'jdbc:x', jdbc.schema-version: 1.10, flag: true}\n",
        rest="spark: {conf: {spark.ratio: 0.60, spark.parts: 8}}",
    )
    settings = settings_of(text)
    assert settings.source.postgres.options == "no"
    assert "password=0123" in settings.source.postgres.conninfo()
    assert settings.sink.catalog["jdbc.schema-version"] == "1.10"
    assert settings.sink.catalog["flag"] == "true"
    assert settings.spark.conf == {"spark.ratio": "0.60", "spark.parts": "8"}


def test_sections_and_keys_without_value_count_as_not_set() -> None:
    settings = settings_of(
        with_sections(
            postgres="port:\n", source="mode: ''\nlogical:\n", sink="flush_interval: ''\n", rest="state:\nspark: ~\n"
        )
    )
    assert settings.source.postgres.port == 5432
    assert settings.source.mode == "logical"
    assert settings.sink.flush_interval == 1.0
    assert settings.state.group == "default"


def test_an_empty_file_leaves_everything_to_the_environment() -> None:
    assert settings_of("# nothing\n", ENOUGH) == load(None, ENOUGH).settings


def test_anchors_and_merges_work() -> None:
    text = """
        tables:
          - &common {name: public.a, skip_snapshot: true, primary_key: [id]}
          - {<<: *common, name: public.b}
    """
    tables = settings_of(text, {key: value for key, value in ENOUGH.items() if key != "TABLES"}).tables
    assert [(entry.name, entry.skip_snapshot, entry.primary_key) for entry in tables] == [
        ("public.a", True, ("id",)),
        ("public.b", True, ("id",)),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tables: [\n  a: b\n", "line 3, column 1"),
        ("a: b: c\n", "line 1, column 5"),
        ("a: *nowhere\n", "undefined alias"),
        ("--- {}\n--- {}\n", "expected a single document"),
        ("a:\n\t- x", "line 2, column 1"),
        ("a: \x01\n", "characters that YAML does not allow"),
    ],
)
def test_broken_yaml_says_where(text: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        load_text(text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.yaml can't be read: No such file"):
        load(tmp_path / "nowhere.yaml", ENOUGH)


def test_a_file_that_is_no_map_is_refused() -> None:
    with pytest.raises(SettingsError, match="must hold a map"):
        load_text("- a\n- b\n")


@pytest.mark.parametrize(
    "text",
    [
        "version: '2'\nlog-pipeline:\n  source: {http: {}}\n  sink: [{iceberg: {}}]\n",
        "pipeline_configurations: {}\n",
        "icestream: {warehouse: /x}\nevents:\n  source: {file: {}}\n  processor: []\n  sink: []\n",
    ],
)
def test_event_pipelines_are_recognised_and_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="event pipelines are not part of this version") as caught:
        load_text(text, ENOUGH)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("address", "endpoint"),
    [
        ("", None),
        (":9090", ("127.0.0.1", 9090)),
        ("0.0.0.0:9090", ("0.0.0.0", 9090)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:9090", ("::1", 9090)),
    ],
)
def test_metrics_endpoint(address: str, endpoint: tuple[str, int] | None) -> None:
    assert load(None, ENOUGH, {"metrics_addr": address}).settings.metrics_endpoint() == endpoint


def test_the_state_lives_in_the_source_unless_told_otherwise() -> None:
    settings = load(None, ENOUGH).settings
    assert settings.state_conninfo() == settings.source.postgres.conninfo()
    assert load(None, ENOUGH, {"state.pipeline": "shop"}).settings.pipeline == "shop"


@pytest.mark.parametrize(("written", "used"), [("My-Schema.x", "my_schema_x"), ("", "_pg2iceberg"), ("ok_1", "ok_1")])
def test_the_coordination_schema_is_sanitised_and_said_so(written: str, used: str) -> None:
    loaded = load_text(with_sections(rest=f"state: {{coordinator_schema: '{written}'}}"))
    assert loaded.settings.state.coordinator_schema == used
    assert [str(notice) for notice in loaded.notices] == (
        [f"state.coordinator_schema (line 15) is used as {used}, made from {written!r}"]
        if written not in ("", used)
        else []
    )
