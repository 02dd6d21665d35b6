"""Which keys a settings file may have: those of the models, and those the loader turns into them."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from icestream.config.section import Path, dotted, is_secret, keys_of, section_at, walk
from icestream.config.settings import Settings

POSTGRES: tuple[str, ...] = ("source", "postgres")
URL: tuple[str, ...] = (*POSTGRES, "url")
FILE_SUFFIX = "_file"
_SHOWN_KEYS = 12

# What people write who know another program; taken as a hint only where the section has such a key.
_ALIASES = {
    **dict.fromkeys(("hostname", "server", "address"), "host"),
    **dict.fromkeys(("dbname", "db"), "database"),
    **dict.fromkeys(("username", "login", "role"), "user"),
    **dict.fromkeys(("pass", "passwd", "pwd", "pw"), "password"),
    **dict.fromkeys(("uri", "dsn", "conninfo", "connection_string"), "url"),
    **dict.fromkeys(("ssl", "ssl_mode", "tls"), "sslmode"),
    **dict.fromkeys(("pk", "key", "keys", "id_columns"), "primary_key"),
    **dict.fromkeys(("table", "source"), "name"),
    **dict.fromkeys(("partition_by", "partition_spec"), "partition"),
    **dict.fromkeys(("slot", "replication_slot"), "slot_name"),
    "publication": "publication_name",
    **dict.fromkeys(("bucket", "location", "root", "base_path"), "warehouse"),
    **dict.fromkeys(("catalog_url", "rest_uri"), "catalog_uri"),
    **dict.fromkeys(("schema", "database"), "namespace"),
    "token": "catalog_token",
    "endpoint": "s3_endpoint",
    "region": "s3_region",
    "access_key": "s3_access_key",
    "secret_key": "s3_secret_key",
    "metrics_port": "metrics_addr",
}


@cache
def secret_paths() -> tuple[tuple[str, ...], ...]:
    """Every key that holds a secret; each may also be given as `<key>_file`."""
    return URL, *(path for path, field in walk(Settings) if is_secret(field))


def file_key(path: tuple[str, ...]) -> tuple[str, ...]:
    return *path[:-1], path[-1] + FILE_SUFFIX


def known_keys(section: Path) -> list[str]:
    """All keys that may stand in a section of the file."""
    model = section_at(Settings, section)
    names = list(keys_of(model)) if model is not None else []
    for path in secret_paths():
        if path[:-1] == section:
            names += [name for name in (path[-1], file_key(path)[-1]) if name not in names]
    return names


def nearest_key(path: Path) -> str | None:
    """The key of the same section that an unknown one was probably meant to be; none if it is at home elsewhere."""
    name, keys = str(path[-1]).lower().replace("-", "_"), known_keys(path[:-1])
    if (meant := _ALIASES.get(name)) in keys:
        return meant
    if homes_of(str(path[-1])):
        return None
    near = get_close_matches(name, keys, 1)
    return near[0] if near else None


def listed_keys(section: Path) -> str:
    """The keys of a section, for a person who guessed; long sections only as far as one reads."""
    keys = known_keys(section)
    return ", ".join(keys[:_SHOWN_KEYS]) + (", …" if len(keys) > _SHOWN_KEYS else "")


def homes_of(name: str) -> list[str]:
    """Sections that have a key, or a section, of exactly this name."""
    homes = {
        dotted(path[:depth]): None
        for path, _ in walk(Settings)
        for depth, step in enumerate(path)
        if step.removesuffix("[]") == name
    }
    return list(homes)
