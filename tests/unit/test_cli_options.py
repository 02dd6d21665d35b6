from __future__ import annotations

import json
from pathlib import Path

import pytest

from icestream.cli.options import INHERITED_FLAGS, Invocation, _inherited_flags
from icestream.observe.logs import LogFormat, LogLevel


def invocation(**given: object) -> Invocation:
    return Invocation(LogLevel.INFO, LogFormat.JSON, **given)  # type: ignore[arg-type]


def test_flags_are_stronger_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRES_URL", "postgresql://env@env-host/db")
    monkeypatch.setenv("POSTGRES_PASSWORD", "from the environment")
    monkeypatch.setenv("WAREHOUSE", "/env")
    flags = {"--postgres-url": "postgresql://flag@flag-host/db", "--tables": "public.a,public.b"}
    settings = invocation(flags=flags).load()
    assert settings.source.postgres.host == "flag-host"
    assert settings.sink.warehouse == "/env"
    assert [table.name for table in settings.tables] == ["public.a", "public.b"]


def test_a_child_comes_to_the_same_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = invocation(flags={"--tables": "public.a", "--catalog-token": "x"})
    monkeypatch.setenv(INHERITED_FLAGS, parent.environment()[INHERITED_FLAGS])
    assert _inherited_flags() == parent.flags


def test_flags_go_to_children_by_the_environment_and_never_as_arguments() -> None:
    call = invocation(config=Path("/etc/icestream.yaml"), flags={"--catalog-token": "secret"})
    assert call.as_arguments() == [
        "--log-level",
        "info",
        "--log-format",
        "json",
        "--config",
        "/etc/icestream.yaml",
    ]
    assert json.loads(call.environment()[INHERITED_FLAGS]) == {"--catalog-token": "secret"}
    assert "secret" not in repr(call)
