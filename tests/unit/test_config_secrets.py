from __future__ import annotations

import json
from pathlib import Path

import pytest

from icestream.config import load
from icestream.config.keys import secret_paths
from icestream.config.masking import looks_secret, masked
from icestream.config.section import dotted
from icestream.errors import SettingsError
from support.settings_texts import ENOUGH, load_text, problems_of, settings_of, with_sections

SECRET = "hunter2-very-secret"


def test_the_secrets_are_known() -> None:
    assert {dotted(path) for path in secret_paths()} == {
        "source.postgres.url",
        "source.postgres.password",
        "source.postgres.sslpassword",
        "sink.catalog_token",
        "sink.catalog_client_secret",
        "sink.s3_access_key",
        "sink.s3_secret_key",
        "state.postgres_url",
    }


@pytest.mark.parametrize("content", [SECRET, f"{SECRET}\n", f"{SECRET}\r\n"])
def test_a_secret_may_come_from_a_file(tmp_path: Path, content: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(content.encode())
    from_file = settings_of(with_sections(postgres=f"password_file: {file}"))
    from_variable = load(None, {**ENOUGH, "POSTGRES_URL": "postgresql://u@h/d", "POSTGRES_PASSWORD_FILE": str(file)})
    for settings in (from_file, from_variable.settings):
        assert settings.source.postgres.password is not None
        assert settings.source.postgres.password.get_secret_value() == SECRET


def test_a_url_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"postgresql://u:{SECRET}@filehost/d\n")
    environ = {**ENOUGH, "POSTGRES_URL": "", "POSTGRES_URL_FILE": str(file), "STATE_POSTGRES_URL_FILE": str(file)}
    settings = load(None, environ).settings
    assert settings.source.postgres.host == "filehost"
    assert settings.state_conninfo() == f"postgresql://u:{SECRET}@filehost/d"


def test_a_variable_wins_over_a_secret_file_of_the_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("from file")
    settings = settings_of(with_sections(postgres=f"password_file: {file}"), {"POSTGRES_PASSWORD": "from variable"})
    assert settings.source.postgres.password is not None
    assert settings.source.postgres.password.get_secret_value() == "from variable"


def test_a_secret_and_its_file_together_are_refused() -> None:
    assert problems_of(with_sections(postgres=f"password: {SECRET}\npassword_file: /x")) == [
        "source.postgres.password_file (line 11): and source.postgres.password are both given; keep one"
    ]


def test_a_secret_file_that_is_not_there_is_named_once() -> None:
    problems = problems_of(
        with_sections(sink="catalog_uri: http://c\ncatalog_auth: bearer\ncatalog_token_file: /nowhere")
    )
    assert problems == ["sink.catalog_token_file (line 16): the file /nowhere can't be read: No such file or directory"]


def test_a_secret_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8 text" in problems_of(with_sections(postgres=f"password_file: {file}"))[0]


def test_secrets_are_in_no_output() -> None:
    text = with_sections(
        postgres=f"password: {SECRET}\nsslpassword: {SECRET}\nparameters: {{oauth_client_secret: {SECRET}}}",
        sink=f"""
            warehouse: s3://bucket/w
            catalog_uri: http://u:{SECRET}@catalog
            catalog_auth: oauth2
            catalog_client_id: me
            catalog_client_secret: {SECRET}
            s3_access_key: {SECRET}
            s3_secret_key: {SECRET}
            catalog_props: {{header.Authorization: {SECRET}, jdbc.password: {SECRET}, other: 'x?password={SECRET}'}}
        """,
        rest=f"""
            state: {{postgres_url: 'postgresql://u:{SECRET}@h/d'}}
            spark: {{conf: {{spark.hadoop.fs.s3a.secret.key: {SECRET}}}}}
        """,
    )
    loaded = load_text(text)
    shown = json.dumps(loaded.settings.redacted())
    assert SECRET not in shown
    assert SECRET not in repr(loaded)
    assert SECRET not in str(loaded.settings)
    assert SECRET in loaded.settings.source.postgres.conninfo()
    assert SECRET in loaded.settings.sink.catalog_properties()["credential"]
    assert '"flush_interval": "1s"' in shown
    assert '"host": "h"' in shown


@pytest.mark.parametrize(
    "sections",
    [
        {"postgres": f"password: [{SECRET}]"},
        {"postgres": f"passwrod: {SECRET}"},
        {"postgres": f"url: 'postgresql://u:{SECRET}@h:x:y/d?{SECRET}=1'"},
        {"postgres": f"url: {SECRET}"},
        {"sink": f"catalog_auth: bearer\ncatalog_token: {SECRET}"},
        {"sink": f"catalog_uri: ftp://u:{SECRET}@h"},
        {"sink": f"catalog: {{type: rest, token: [{SECRET}]}}"},
        {"sink": f"s3_secret_key: {{a: {SECRET}}}"},
        {"rest": f"state: {{postgres_url: 'mysql://u:{SECRET}@h'}}"},
        {"rest": f"state: 'postgresql://u:{SECRET}@h/d'"},
        {"rest": f"state: {SECRET}"},
        {"postgres": "port: ${DB_PASSWORD}"},
    ],
)
def test_secrets_are_in_no_error(sections: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as caught:
        load_text(with_sections(**sections), {"DB_PASSWORD": SECRET})
    error = caught.value
    assert SECRET not in "\n".join((str(error), repr(error), *error.problems, error.hint or ""))
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("token", True),
        ("jdbc.password", True),
        ("s3.secret-access-key", True),
        ("header.Authorization", True),
        ("DB_PASSWORD", True),
        ("PGPASS", True),
        ("adls.account-key", True),
        ("uri", False),
        ("primary_key", False),
        ("PG_PORT", False),
        ("compass", False),
    ],
)
def test_secret_names(name: str, secret: bool) -> None:
    assert looks_secret(name) is secret


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:p@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:p@ss/word@h/d", "postgresql://u:***@h/d"),
        ("host=h password='a b' user=u", "host=h password=*** user=u"),
        ("jdbc:postgresql://h/d?user=u&password=p&x=1", "jdbc:postgresql://h/d?user=u&password=***&x=1"),
        ("http://h:8181/x", "http://h:8181/x"),
        ("s3://bucket/path", "s3://bucket/path"),
    ],
)
def test_texts_are_shown_without_passwords(text: str, shown: str) -> None:
    assert masked(text) == shown
