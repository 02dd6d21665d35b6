"""Loads settings from the text of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent, indent
from typing import Any

import pytest

from icestream.config import Loaded, Settings, load
from icestream.errors import SettingsError

ENOUGH = {
    "POSTGRES_URL": "postgresql://reader:s3cr3t@db.example:5433/shop",
    "TABLES": "public.orders",
    "WAREHOUSE": "/lake",
}


def load_text(text: str, environ: Mapping[str, str] | None = None, **overrides: Any) -> Loaded:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "icestream.yaml"
        path.write_text(dedent(text))
        return load(path, environ or {}, overrides)


def settings_of(text: str, environ: Mapping[str, str] | None = None) -> Settings:
    return load_text(text, environ).settings


def problems_of(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load_text(text, environ)
    return list(caught.value.problems)


def with_sections(
    *, table: str = "", tables: str = "", postgres: str = "", source: str = "", sink: str = "", rest: str = ""
) -> str:
    """A file that is right, plus the given lines."""
    return "\n".join(
        (
            "tables:",
            "  - name: public.orders",
            indent(dedent(table), "    "),
            indent(dedent(tables), "  "),
            "source:",
            "  postgres:",
            *("    host: h", "    database: d", "    user: u"),
            indent(dedent(postgres), "    "),
            indent(dedent(source), "  "),
            "sink:",
            "" if "warehouse:" in sink else "  warehouse: /lake",
            indent(dedent(sink), "  "),
            dedent(rest),
        )
    )
