"""Settings for a database and a warehouse of a test's own."""

from __future__ import annotations

from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from icestream.config import Settings, load


def settings_for(conninfo: str, warehouse: Path, **variables: str) -> Settings:
    """Made from environment variables, as `icestream run` without a file does it."""
    return load(None, environment_for(conninfo, warehouse, **variables)).settings


def environment_for(conninfo: str, warehouse: Path, **variables: str) -> dict[str, str]:
    parts = {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}
    return {
        "POSTGRES_HOST": parts["host"],
        "POSTGRES_PORT": parts["port"],
        "POSTGRES_USER": parts["user"],
        "POSTGRES_PASSWORD": parts.get("password", ""),
        "POSTGRES_DATABASE": parts["dbname"],
        "TABLES": "public.orders",
        "WAREHOUSE": str(warehouse),
        **variables,
    }
