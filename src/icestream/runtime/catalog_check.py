"""What a catalog tells without Spark, so that `icestream check` stays quick."""

from __future__ import annotations

import json
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from icestream.config import catalog
from icestream.config.masking import masked
from icestream.config.settings import Settings
from icestream.verify.findings import Finding, error

_TIMEOUT_S = 5.0
_HEADER = "header."
_SQLITE = "jdbc:sqlite:"
_TABLES = "SELECT table_namespace, table_name FROM iceberg_tables WHERE catalog_name = ?"
_NO_TABLES_YET = "no such table"  # Spark has not made its own yet
_LEVEL_SEPARATOR = "%1F"
_REFUSED = (401, 403)
_NOT_FOUND = 404
# With these the answer depends on a login or a signature that only Spark's client makes.
_SIGNED_BY_SPARK = ("oauth2", "sigv4")


def check_catalog(settings: Settings) -> list[Finding]:
    sink = settings.sink
    if not _is_rest(settings):
        return []
    properties = sink.catalog_properties()
    try:
        _ask_for_config(properties)
    except urllib.error.HTTPError as err:
        if err.code in _REFUSED and sink.catalog_auth in _SIGNED_BY_SPARK:
            return []
        return [_refusal(properties["uri"], err.code)]
    except json.JSONDecodeError:
        return [_no_catalog(properties["uri"], "no JSON")]
    except (OSError, ValueError) as err:
        reason = getattr(err, "reason", None) or err
        return [
            error(
                f"the REST catalog {masked(properties['uri'])} cannot be reached: {reason}",
                "check `sink.catalog_uri` (or `uri` in `sink.catalog`), and that the catalog runs",
            )
        ]
    return []


def tables_in_catalog(settings: Settings, namespaces: Iterable[str]) -> frozenset[str] | None:
    """As `namespace.table`, at least those of `namespaces`; None where only Spark can tell.

    That is every catalog but a REST catalog that needs no signature, and a SQLite file.
    """
    properties = settings.sink.catalog_properties()
    if _is_rest(settings):
        return _tables_by_rest(properties, namespaces)
    if properties.get("uri", "").startswith(_SQLITE):
        file = Path(properties["uri"].removeprefix(_SQLITE).partition("?")[0])
        return _tables_in_file(file, settings.sink.catalog_name)
    return None


def _is_rest(settings: Settings) -> bool:
    return catalog.type_of(settings.sink.catalog, settings.sink.catalog_uri) == "rest"


def _tables_in_file(file: Path, catalog_name: str) -> frozenset[str] | None:
    if not file.is_file():
        return frozenset() if file.is_absolute() else None  # SQLite's other names for a database
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=_TIMEOUT_S)) as conn:
            rows = conn.execute(_TABLES, (catalog_name,)).fetchall()
    except sqlite3.Error as err:
        return frozenset() if _NO_TABLES_YET in str(err) else None
    return frozenset(f"{namespace}.{name}" for namespace, name in rows)


def _tables_by_rest(properties: Mapping[str, str], namespaces: Iterable[str]) -> frozenset[str] | None:
    """Whether the catalog answers at all is for `check_catalog` to say."""
    try:
        prefix = _prefix(properties, _ask_for_config(properties))
        found = {namespace: list(_listed(properties, prefix, namespace)) for namespace in namespaces}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # no answer, or not what the standard says
        return None
    return frozenset(f"{namespace}.{name}" for namespace, names in found.items() for name in names)


def _prefix(properties: Mapping[str, str], config: Mapping[str, Any]) -> str:
    merged = {**(config.get("defaults") or {}), **properties, **(config.get("overrides") or {})}
    return f"/{merged['prefix']}" if merged.get("prefix") else ""


def _listed(properties: Mapping[str, str], prefix: str, namespace: str) -> Iterator[str]:
    levels = _LEVEL_SEPARATOR.join(quote(level, safe="") for level in namespace.split("."))
    path, token = f"{prefix}/namespaces/{levels}/tables", None
    while True:
        try:
            page = _ask(properties, path, {"pageToken": token} if token else {})
        except urllib.error.HTTPError as err:
            if err.code == _NOT_FOUND:
                return  # the namespace is not there
            raise
        yield from (table["name"] for table in page["identifiers"])
        token = page.get("next-page-token")
        if not token:
            return


def _ask_for_config(properties: Mapping[str, str]) -> Any:
    """The first question that every client of a REST catalog asks."""
    warehouse = properties.get("warehouse")
    return _ask(properties, "/config", {"warehouse": warehouse} if warehouse else {})


def _ask(properties: Mapping[str, str], path: str, parameters: Mapping[str, str]) -> Any:
    """Raises HTTPError, OSError or ValueError."""
    query = "?" + urlencode(parameters) if parameters else ""
    url = properties["uri"].rstrip("/") + "/v1" + path + query
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("it is no http:// or https:// address")
    headers = {name.removeprefix(_HEADER): value for name, value in properties.items() if name.startswith(_HEADER)}
    if token := properties.get("token"):
        headers["Authorization"] = f"Bearer {token}"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_S) as answer:
        return json.load(answer)


def _refusal(uri: str, status: int) -> Finding:
    if status in _REFUSED:
        return error(
            f"the REST catalog {masked(uri)} refuses us (HTTP {status})",
            "check `sink.catalog_auth` and the token or credentials that belong to it",
        )
    return _no_catalog(uri, f"HTTP {status}")


def _no_catalog(uri: str, answer: str) -> Finding:
    return error(
        f"{masked(uri)} does not answer as a REST catalog does: {answer} for /v1/config",
        "check `sink.catalog_uri`: it is the address up to, and without, /v1; and `sink.warehouse`",
    )
