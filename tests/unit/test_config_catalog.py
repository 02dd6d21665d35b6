from __future__ import annotations

from pathlib import Path

import pytest

from support.settings_texts import load_text, problems_of, settings_of, with_sections


def properties(sink: str) -> dict[str, str]:
    return settings_of(with_sections(sink=sink)).sink.catalog_properties()


def test_without_a_catalog_an_embedded_one_lies_beside_the_warehouse() -> None:
    assert properties("warehouse: /lake/") == {
        "type": "jdbc",
        "uri": "jdbc:sqlite:/lake/catalog.db?journal_mode=WAL&busy_timeout=30000",
        "jdbc.schema-version": "V1",
        "warehouse": "/lake",
    }


@pytest.mark.parametrize(
    ("written", "location"),
    [
        ("lake", "{cwd}/lake"),
        ("./a/../lake/", "{cwd}/lake"),
        ("~/lake", "{home}/lake"),
        ("~nobody-of-this-name/lake", "{cwd}/~nobody-of-this-name/lake"),
        ("file:///lake", "/lake"),
        ("file:/a%20b/", "/a b"),
        ("/with space", "/with space"),
    ],
)
def test_local_warehouses_become_absolute_paths(written: str, location: str) -> None:
    sink = settings_of(with_sections(sink=f"warehouse: {written}")).sink
    expected = location.format(cwd=Path.cwd(), home=Path.home())
    assert sink.warehouse == expected
    assert sink.local_warehouse == Path(expected)
    assert sink.staging_root == f"{expected}/staged"


def test_catalog_uri_is_the_short_form_for_rest() -> None:
    assert properties("warehouse: s3://b/w\ncatalog_uri: http://c:8181/") == {
        "type": "rest",
        "uri": "http://c:8181/",
        "warehouse": "s3://b/w",
        "client.region": "us-east-1",
        "s3.region": "us-east-1",
    }


@pytest.mark.parametrize(
    ("sink", "expected"),
    [
        (
            "catalog_auth: bearer\ncatalog_token: t",
            {"rest.auth.type": "oauth2", "token": "t"},
        ),
        (
            "catalog_auth: oauth2\ncatalog_client_id: i\ncatalog_client_secret: s",
            {"rest.auth.type": "oauth2", "oauth2-server-uri": "http://c/v1/oauth/tokens", "credential": "i:s"},
        ),
        (
            "catalog_auth: sigv4\ns3_region: eu-west-1",
            {"rest.auth.type": "sigv4", "rest.signing-region": "eu-west-1"},
        ),
        (
            "credential_mode: vended",
            {"header.X-Iceberg-Access-Delegation": "vended-credentials"},
        ),
        (
            "credential_mode: static\ns3_endpoint: http://m\ns3_access_key: a\ns3_secret_key: k",
            {
                "s3.endpoint": "http://m",
                "s3.path-style-access": "true",
                "s3.access-key-id": "a",
                "s3.secret-access-key": "k",
            },
        ),
        (
            "catalog_props: {header.X-Tenant: me, client.region: mars}",
            {"header.X-Tenant": "me", "client.region": "mars"},
        ),
    ],
)
def test_rest_catalogs(sink: str, expected: dict[str, str]) -> None:
    found = properties(f"warehouse: s3://b/w\ncatalog_uri: http://c\n{sink}")
    assert expected.items() <= found.items()


def test_aws_catalogs_are_signed_under_their_own_name() -> None:
    found = properties(
        "warehouse: '123456:s3tablescatalog/b'\nstaging: s3://b/staged\n"
        "catalog_uri: https://glue.eu-west-1.amazonaws.com/iceberg\ncatalog_auth: sigv4"
    )
    assert found["rest.signing-name"] == "glue"


def test_a_given_catalog_is_passed_through_and_wins() -> None:
    found = properties(
        "warehouse: s3://b/w\ncatalog: {type: glue, glue.id: '7', io-impl: my.FileIO}\ncatalog_props: {glue.id: '8'}"
    )
    assert found["type"] == "glue"
    assert found["io-impl"] == "my.FileIO"
    assert found["glue.id"] == "8"
    assert found["warehouse"] == "s3://b/w"


@pytest.mark.parametrize(
    ("given", "kind"),
    [("{uri: 'thrift://h:9083'}", "hive"), ("{uri: 'jdbc:postgresql://h/d'}", "jdbc"), ("{uri: 'https://c'}", "rest")],
)
def test_the_type_follows_from_the_address(given: str, kind: str) -> None:
    assert properties(f"catalog: {given}")["type"] == kind


def test_the_warehouse_may_be_in_the_catalog_map() -> None:
    text = with_sections(sink="catalog: {type: hadoop, warehouse: ./wh}").replace("warehouse: /lake", "")
    sink = settings_of(text).sink
    assert sink.warehouse == sink.catalog_properties()["warehouse"] == f"{Path.cwd()}/wh"


def test_a_rest_catalog_may_know_the_warehouse_by_a_name() -> None:
    sink = settings_of(with_sections(sink="warehouse: prod\nstaging: s3://b/staged/\ncatalog_uri: http://c")).sink
    assert sink.catalog_properties()["warehouse"] == "prod"
    assert sink.local_warehouse is None
    assert sink.staging_root == "s3://b/staged"


@pytest.mark.parametrize(
    ("sink", "reason"),
    [
        ("catalog_uri: http://a\ncatalog: {type: rest}", "both describe the catalog"),
        ("catalog_uri: thrift://a", "must be the http:// or https:// address"),
        ("catalog: {foo: bar}", "sink.catalog (line 14): needs `type`"),
        ("catalog: {type: resst}", "sink.catalog.type = 'resst' (line 14): must be one of rest, jdbc"),
        ("warehouse: s3://b/w", "the embedded catalog needs a local warehouse"),
        ("warehouse: '/a?b'", "must not contain ?"),
        ("warehouse: s3://b/w\ncatalog: {type: hadoop}", "no atomic commit outside a local folder"),
        ("catalog: {type: hadoop, warehouse: hdfs://n/w}", "no atomic commit outside a local folder"),
        ("warehouse: prod\ncatalog_uri: http://c", "sink.staging (line 12): is required"),
        ("catalog_auth: bearer\ncatalog_token: t", "has a meaning only for a REST catalog"),
        (
            "catalog_uri: http://c\ncatalog_auth: bearer",
            "sink.catalog_token (line 12): is required by catalog_auth: bearer",
        ),
        ("catalog_uri: http://c\ncatalog_auth: oauth2\ncatalog_client_id: x", "sink.catalog_client_secret"),
        ("credential_mode: vended", "only a REST catalog hands out credentials"),
        ("s3_access_key: a", "sink.s3_secret_key (line 12): is required"),
        ("s3_secret_key: a", "sink.s3_access_key (line 12): is required"),
        ("catalog: {type: [rest]}\ncatalog_auth: sigv4", "sink.catalog.type (line 14): must be text, not a list"),
        (
            "catalog_uri: [x]\ncatalog_auth: bearer\ncatalog_token: t",
            "sink.catalog_uri (line 14): must be text, not a list",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(sink: str, reason: str) -> None:
    problems = problems_of(with_sections(sink=sink))
    assert len(problems) == 1
    assert reason in problems[0]


def test_static_credentials_on_s3_need_both_keys() -> None:
    problems = problems_of(with_sections(sink="warehouse: s3://b/w\ncatalog_uri: http://c\ncredential_mode: static"))
    assert ["sink.s3_access_key" in problems[0], "sink.s3_secret_key" in problems[1]] == [True, True]


def test_s3_keys_without_an_s3_warehouse_are_answered_by_a_notice() -> None:
    loaded = load_text(with_sections(sink="s3_endpoint: http://m\ns3_region: x"))
    assert [str(notice) for notice in loaded.notices] == [
        "sink.s3_endpoint (line 14) has no effect: the warehouse is not in an S3 store",
        "sink.s3_region (line 15) has no effect: the warehouse is not in an S3 store",
    ]
    assert "s3.endpoint" not in loaded.settings.sink.catalog_properties()


@pytest.mark.parametrize(
    ("sink", "notice"),
    [
        (
            "catalog_token: t",
            "sink.catalog_token (line 16) has no effect: it is for catalog_auth bearer, and that is none",
        ),
        ("credential_mode: iam\ns3_access_key: a\ns3_secret_key: b", "has no effect: credential_mode is iam"),
        ("credential_mode: vended\ns3_access_key: a\ns3_secret_key: b", "has no effect: credential_mode is vended"),
    ],
)
def test_credentials_nobody_uses_are_answered_by_a_notice(sink: str, notice: str) -> None:
    loaded = load_text(with_sections(sink=f"warehouse: s3://b/w\ncatalog_uri: http://c\n{sink}"))
    assert notice in str(loaded.notices[0])
    assert "s3.secret-access-key" not in loaded.settings.sink.catalog_properties()
