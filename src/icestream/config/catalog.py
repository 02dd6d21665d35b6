"""From the keys of `sink` to the properties of an Iceberg catalog. Pure: nothing is opened here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from icestream.config.locations import absolute

if TYPE_CHECKING:
    from pydantic import SecretStr

    from icestream.config.sink import SinkSettings

TYPES = ("rest", "jdbc", "hadoop", "hive", "glue", "nessie", "bigquery")
EMBEDDED_FILE = "catalog.db"

NEEDED_BY_AUTH = {"bearer": ("catalog_token",), "oauth2": ("catalog_client_id", "catalog_client_secret")}

# WAL and a patient lock let several Spark processes commit at once.
_SQLITE_OPTIONS = "journal_mode=WAL&busy_timeout=30000"
_S3_SCHEMES = ("s3", "s3a", "s3n")
_S3_FILE_IO = "org.apache.iceberg.aws.s3.S3FileIO"
_TYPE_BY_SCHEME = {"http": "rest", "https": "rest", "jdbc": "jdbc", "thrift": "hive"}
_SIGNING_NAMES = ("glue", "s3tables")


def type_of(given: Mapping[str, str], uri: str) -> str | None:
    """The catalog's type; "" if `catalog` does not tell (or names a class); None for the embedded one."""
    if uri:
        return "rest"
    if not describes_a_catalog(given):
        return None
    if "type" in given or "catalog-impl" in given:
        return given.get("type", "").strip().lower()
    return _TYPE_BY_SCHEME.get(urlsplit(given.get("uri", "")).scheme, "")


def describes_a_catalog(given: Mapping[str, str]) -> bool:
    """Whether the map says more than where the warehouse is."""
    return any(name != "warehouse" for name in given)


def properties(sink: SinkSettings) -> dict[str, str]:
    kind = type_of(sink.catalog, sink.catalog_uri)
    if kind is None:
        generated = _embedded(sink)
    elif sink.catalog_uri:
        generated = {"type": "rest", "uri": sink.catalog_uri, "warehouse": sink.warehouse}
    else:
        generated = {"warehouse": sink.warehouse, **({"type": kind} if kind else {})}
    signing_in = _auth(sink, sink.catalog_uri or sink.catalog.get("uri", "")) if kind == "rest" else {}
    merged = {**generated, **signing_in, **_storage(sink, kind), **sink.catalog, **sink.catalog_props}
    if kind != "rest":  # to a REST catalog it may be a name
        merged["warehouse"] = absolute(merged["warehouse"])
    return {name: value for name, value in merged.items() if value}


def _embedded(sink: SinkSettings) -> dict[str, str]:
    return {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{sink.warehouse}/{EMBEDDED_FILE}?{_SQLITE_OPTIONS}",
        "jdbc.schema-version": "V1",
        "warehouse": sink.warehouse,
    }


def _auth(sink: SinkSettings, uri: str) -> dict[str, str]:
    if sink.catalog_auth == "bearer":
        return {"rest.auth.type": "oauth2", "token": _revealed(sink.catalog_token)}
    if sink.catalog_auth == "oauth2":
        return {
            "rest.auth.type": "oauth2",
            "oauth2-server-uri": f"{uri.rstrip('/')}/v1/oauth/tokens",
            "credential": f"{sink.catalog_client_id}:{_revealed(sink.catalog_client_secret)}",
        }
    return _sigv4(sink, uri) if sink.catalog_auth == "sigv4" else {}


def _sigv4(sink: SinkSettings, uri: str) -> dict[str, str]:
    service = (urlsplit(uri).hostname or "").partition(".")[0]
    signing = {"rest.auth.type": "sigv4", "rest.signing-region": sink.s3_region}
    if service in _SIGNING_NAMES:
        signing["rest.signing-name"] = service
    if credential_mode(sink) == "static":
        signing["rest.access-key-id"] = _revealed(sink.s3_access_key)
        signing["rest.secret-access-key"] = _revealed(sink.s3_secret_key)
    return signing


def credential_mode(sink: SinkSettings) -> str:
    if sink.credential_mode is not None:
        return sink.credential_mode
    return "static" if sink.s3_access_key else "iam"


def uses_s3(sink: SinkSettings) -> bool:
    """Whether the `s3_*` keys have a meaning: the warehouse is there, or may be behind a REST catalog's name for it."""
    if urlsplit(sink.warehouse).scheme.lower() in _S3_SCHEMES:
        return True
    given = sink.s3_endpoint or sink.s3_access_key
    return bool(given) and type_of(sink.catalog, sink.catalog_uri) == "rest" and sink.local_warehouse is None


def _storage(sink: SinkSettings, kind: str | None) -> dict[str, str]:
    mode = credential_mode(sink)
    if mode == "vended":
        return {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
    if not uses_s3(sink):
        return {}
    # Java reads client.region, PyIceberg s3.region.
    storage = {"client.region": sink.s3_region, "s3.region": sink.s3_region}
    if kind != "rest":  # a REST catalog finds the right FileIO by the scheme
        storage["io-impl"] = _S3_FILE_IO
    if sink.s3_endpoint:
        storage |= {"s3.endpoint": sink.s3_endpoint, "s3.path-style-access": "true"}
    if mode == "static":
        storage["s3.access-key-id"] = _revealed(sink.s3_access_key)
        storage["s3.secret-access-key"] = _revealed(sink.s3_secret_key)
    return storage


def _revealed(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret is not None else ""
