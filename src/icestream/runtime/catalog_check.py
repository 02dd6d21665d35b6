"""What a catalog tells without Spark, so that `icestream check` stays quick."""

from __future__ import annotations

import sqlite3
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from icestream.config import catalog
from icestream.config.masking import masked
from icestream.config.settings import Settings
from icestream.verify.findings import Finding, error

_TIMEOUT_S = 5.0
_HEADER = "header."
_SQLITE = "jdbc:sqlite:"
_TABLES = "SELECT table_namespace, table_name FROM iceberg_tables WHERE catalog_name = ?"
_REFUSED = (401, 403)
# With these the answer depends on a login or a signature that only Spark's client makes.
_SIGNED_BY_SPARK = ("oauth2", "sigv4")


def check_catalog(settings: Settings) -> list[Finding]:
    sink = settings.sink
    if catalog.type_of(sink.catalog, sink.catalog_uri) != "rest":
        return []
    properties = sink.catalog_properties()
    try:
        _ask(properties)
    except urllib.error.HTTPError as err:
        if err.code in _REFUSED and sink.catalog_auth in _SIGNED_BY_SPARK:
            return []
        return [_refusal(properties["uri"], err.code)]
    except (OSError, ValueError) as err:
        reason = getattr(err, "reason", None) or err
        return [
            error(
                f"the REST catalog {masked(properties['uri'])} cannot be reached: {reason}",
                "check `sink.catalog_uri` (or `uri` in `sink.catalog`), and that the catalog runs",
            )
        ]
    return []


def tables_in_catalog(settings: Settings) -> frozenset[str]:
    """As `namespace.table`, where the catalog is a file beside the warehouse; nothing is known of others."""
    properties = settings.sink.catalog_properties()
    file = Path(properties.get("uri", "").removeprefix(_SQLITE).partition("?")[0])
    if not properties.get("uri", "").startswith(_SQLITE) or not file.is_file():
        return frozenset()
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=_TIMEOUT_S)) as conn:
            rows = conn.execute(_TABLES, (settings.sink.catalog_name,)).fetchall()
    except sqlite3.Error:
        return frozenset()  # busy, or Spark has not made its tables yet
    return frozenset(f"{namespace}.{name}" for namespace, name in rows)


def _ask(properties: Mapping[str, str]) -> None:
    """The first question that every client of a REST catalog asks. Raises HTTPError, OSError or ValueError."""
    warehouse = properties.get("warehouse")
    query = "?" + urlencode({"warehouse": warehouse}) if warehouse else ""
    url = properties["uri"].rstrip("/") + "/v1/config" + query
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("it is no http:// or https:// address")
    headers = {name.removeprefix(_HEADER): value for name, value in properties.items() if name.startswith(_HEADER)}
    if token := properties.get("token"):
        headers["Authorization"] = f"Bearer {token}"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_S):
        pass


def _refusal(uri: str, status: int) -> Finding:
    if status in _REFUSED:
        return error(
            f"the REST catalog {masked(uri)} refuses us (HTTP {status})",
            "check `sink.catalog_auth` and the token or credentials that belong to it",
        )
    return error(
        f"{masked(uri)} does not answer as a REST catalog does: HTTP {status} for /v1/config",
        "check `sink.catalog_uri`: it is the address up to, and without, /v1; and `sink.warehouse`",
    )
