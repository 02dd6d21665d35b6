"""`sink`: the warehouse, the catalog, and the pace of writing."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, ValidationInfo, field_validator

from icestream.config import catalog
from icestream.config.locations import absolute, is_bare_name
from icestream.config.partition import PartitionField
from icestream.config.scalars import (
    ByteSize,
    Choice,
    Duration,
    Flag,
    OffDuration,
    Properties,
    Secret,
    Text,
    Whole,
    at_least,
    refuse,
)
from icestream.config.section import Section, key
from icestream.config.tables import FormatVersionKey, WriteModeKey

CatalogAuth = Literal["none", "bearer", "oauth2", "sigv4"]
CredentialMode = Literal["static", "iam", "vended"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CARE = "is not active yet: table care (compaction, expiry, orphan removal) is not part of this version"
_META = "is not active yet: meta tables and markers are not part of this version"


def _catalog_name(value: str) -> str:
    if not _IDENTIFIER.fullmatch(value):
        raise refuse("must be letters, digits and underscores: it becomes part of Spark's setting names")
    if value == "spark_catalog":
        raise refuse("is the name of Spark's built-in catalog; choose another")
    return value


def _namespace(value: str) -> str:
    if "." in value:
        raise refuse("must be a single level, without dots")
    return value


def _events_partition(value: str) -> str:
    try:
        return str(PartitionField.parse(value))
    except ValueError as err:
        raise refuse(str(err)) from err


def _cores() -> int:
    return os.cpu_count() or 1


class SinkSettings(Section):
    catalog_name: Annotated[Text, AfterValidator(_catalog_name)] = key("icestream", "Name of the catalog in Spark SQL.")
    catalog: Properties = key(
        {},
        "Iceberg catalog properties, passed through to Spark's catalog (`type`, `uri`, …). "
        "With neither this nor `catalog_uri`: a JDBC catalog on SQLite, `<warehouse>/catalog.db`.",
        show=False,
    )
    catalog_uri: Text = key("", "Address of a REST catalog; the short form of `catalog`.", upstream="required key")
    # After the two keys above: what a bare name means depends on the catalog.
    warehouse: Text = key(
        "",
        "Where tables and staged files lie: a local folder or any URI Spark can write to. "
        "With a REST catalog it may also be the name the catalog knows it by; then `staging` is required.",
        default_text="required",
        validate_default=True,
    )
    staging: Annotated[Text, AfterValidator(absolute)] | None = key(
        None, "Where staged files lie: a local folder or a URI.", default_text="`<warehouse>/staged`"
    )
    staging_format: Annotated[Literal["columns", "json"], Choice] = key(
        "columns",
        "How staged files hold rows: `columns`, a text column for each of the source; or `json`, the six columns of "
        "pg2iceberg with the row as JSON text, for people who read the files themselves. It costs capture and workers "
        "several times as much.",
        upstream="`json`, with tagged values",
    )
    namespace: Annotated[Text, AfterValidator(_namespace)] = key(
        "", "Iceberg namespace of all tables. Empty: each table's PostgreSQL schema.", upstream="required key"
    )
    catalog_auth: Annotated[CatalogAuth, Choice] = key(
        "none",
        "How to sign in at the REST catalog: `bearer` (with `catalog_token`), `oauth2` (with `catalog_client_id` and "
        "`catalog_client_secret`), `sigv4` (AWS).",
    )
    catalog_token: Secret | None = key(None, "Token for `catalog_auth: bearer`.")
    catalog_client_id: Text = key("", "Client id for `catalog_auth: oauth2`.")
    catalog_client_secret: Secret | None = key(None, "Client secret for `catalog_auth: oauth2`.")
    catalog_props: Properties = key({}, "More catalog properties; these win over all others.", show=False)
    credential_mode: Annotated[CredentialMode, Choice] | None = key(
        None,
        "Where credentials of the object store come from: `static` (`s3_access_key`, `s3_secret_key`), `iam` (the AWS "
        "chain), `vended` (the REST catalog).",
        default_text="`static` with `s3_access_key`, else `iam`",
        upstream="`static`",
    )
    s3_endpoint: Text = key(
        "", "Address of an S3-compatible store; addressed path-style.", upstream="required for `static`"
    )
    s3_access_key: Secret | None = key(None, "Access key of the object store.")
    s3_secret_key: Secret | None = key(None, "Secret key of the object store.")
    s3_region: Text = key("us-east-1", "Region of the object store.")
    write_mode: WriteModeKey = key(
        "merge",
        "How changes are written: `merge` (row-level deletes beside the data files, by position), `copy-on-write` "
        "(data files are written anew), `append` (a changelog: every change is a row), `equality` (row-level deletes "
        "by key). `docs/write-modes.md` says when to use which.",
    )
    format_version: FormatVersionKey = key(3, "Iceberg format version of new tables.")
    publish: Annotated[Literal["per-table", "together"], Choice] = key(
        "per-table",
        "`per-table`: each table shows its changes as soon as it has them. `together` is not part of this version.",
    )
    flush_interval: Annotated[Duration, at_least(0.1, "100ms")] = key(
        1.0, "Changes are made durable at least this often.", upstream="10s"
    )
    flush_rows: Annotated[Whole, at_least(1)] = key(
        50_000, "Changes are made durable after this many rows.", upstream="1000"
    )
    flush_bytes: Annotated[ByteSize, at_least(1)] = key(64 * 1024**2, "Changes are made durable after this many bytes.")
    materializer_interval: Annotated[Duration, at_least(0.1, "100ms")] = key(
        10.0, "Staged changes are applied to their table at least this often.", upstream="30s in the Go version"
    )
    materializer_concurrency: Annotated[Whole, at_least(1)] = key(
        description="How many tables are worked at once.",
        default_factory=_cores,
        default_text="number of cores",
        upstream="16 in the Go version",
    )
    materializer_worker_id: Text | None = key(
        None, "Worker id of `icestream materializer-only` when `--worker-id` is not given."
    )
    materializer_target_file_size: ByteSize | None = key(
        None,
        "Size of the files that are written to a new table; its property `write.target-file-size-bytes`.",
        default_text="Iceberg's, 512mb",
        upstream="8mb in the Go version",
    )
    events_partition: Annotated[Text, AfterValidator(_events_partition)] | None = key(
        None,
        "Partition expression of the events table.",
        notice="has no effect: it partitions the Go version's events tables, in which changes were staged; here they "
        "are staged as files, which `sink.staging` and `sink.staging_format` describe",
        upstream="`day(_ts)` in the Go version",
    )
    target_file_size: ByteSize = key(128 * 1024**2, "Size compaction aims at; 0 switches it off.", notice=_CARE)
    compaction_data_files: Annotated[Whole, at_least(1)] = key(
        20, "Compact a table with this many data files.", notice=_CARE, upstream="8 in the Rust version"
    )
    compaction_delete_files: Annotated[Whole, at_least(1)] = key(
        10, "Compact a table with this many delete files.", notice=_CARE, upstream="4 in the Rust version"
    )
    maintenance_interval: Annotated[Duration, at_least(1, "1s")] = key(
        3600.0, "How often tables are cared for.", notice=_CARE
    )
    maintenance_retention: OffDuration = key(
        168 * 3600.0, "Snapshots older than this are expired.", notice=_CARE, upstream="off in the Rust version"
    )
    maintenance_grace: OffDuration = key(
        24 * 3600.0, "Files nobody knows are removed after this time.", notice=_CARE, upstream="30m"
    )
    materialized_prefix: Text | None = key(
        None, "Folder of the tables' files below the warehouse.", notice=_CARE, upstream="`materialized/`"
    )
    meta_enabled: Flag = key(False, "Whether meta tables are kept.", notice=_META, upstream="true in the Go version")
    meta_namespace: Text | None = key(
        None,
        "Namespace of markers and meta tables.",
        notice=_META,
        upstream="`_pg2iceberg` in the Go version, off in the Rust version",
    )

    @field_validator("warehouse")
    @classmethod
    def _resolve_warehouse(cls, value: str, info: ValidationInfo) -> str:
        given: Mapping[str, str] = info.data.get("catalog", {})
        location = value or given.get("warehouse", "")
        if catalog.type_of(given, info.data.get("catalog_uri", "")) == "rest" and is_bare_name(location):
            return location
        return absolute(location)

    def catalog_properties(self) -> dict[str, str]:
        """The properties of the Iceberg catalog, as Spark takes them. May contain secrets: never log them."""
        return catalog.properties(self)

    @property
    def local_warehouse(self) -> Path | None:
        """The warehouse's folder, or None where it is not on this machine's disk."""
        return Path(self.warehouse) if self.warehouse.startswith("/") else None

    @property
    def staging_root(self) -> str:
        return self.staging or f"{self.warehouse}/staged"
