"""`source`: the PostgreSQL database, and how its changes are read."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator

from icestream.config.conninfo import faults_in
from icestream.config.scalars import (
    ByteSize,
    Choice,
    Duration,
    Properties,
    Secret,
    Text,
    Whole,
    at_least,
    refuse,
)
from icestream.config.section import Section, key

Mode = Literal["logical", "query"]
SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]

MAX_IDENTIFIER_BYTES = 63
_SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}")
# What a replication connection sets itself.
_RESERVED_PARAMETERS = frozenset(("replication", "client_encoding", "dbname"))


def _ssl_mode(value: Any) -> Any:
    if value is False or (isinstance(value, str) and value.strip().lower() in ("off", "false")):
        return "disable"
    return value


def _host(value: str) -> str:
    if "," in value:
        raise refuse("names several servers; a replication slot lives on one, so name that one")
    return value[1:-1] if value.startswith("[") and value.endswith("]") else value


def _port(value: int) -> int:
    if not 1 <= value <= 65535:
        raise refuse("must be a port number from 1 to 65535")
    return value


def _slot_name(value: str) -> str:
    if not _SLOT_NAME.fullmatch(value):
        raise refuse("must be 1 to 63 lower-case letters, digits or underscores; PostgreSQL allows no other slot name")
    return value


def identifier(value: str) -> str:
    if not value.strip() or len(value.encode()) > MAX_IDENTIFIER_BYTES:
        raise refuse(f"must be a PostgreSQL name of 1 to {MAX_IDENTIFIER_BYTES} bytes")
    return value


def _parameters(value: dict[str, str]) -> dict[str, str]:
    from psycopg.pq import Conninfo

    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    own = set(PostgresSettings.model_fields) | _RESERVED_PARAMETERS
    reasons = {
        "which is not taken here: Icestream sets it, or it is a key beside `parameters`": own.intersection(value),
        "which libpq does not know": set(value) - own - known,
    }
    wrong = [f"sets {', '.join(sorted(names))}, {reason}" for reason, names in reasons.items() if names]
    if wrong := [*wrong, *faults_in({name: text for name, text in value.items() if name not in own})]:
        raise refuse("; and it ".join(wrong))
    return value


class PostgresSettings(Section):
    """The connection to the source. What is left out, libpq takes from its own variables and files."""

    host: Annotated[Text, AfterValidator(_host)] = key(
        "", "Host name, address, or folder of a Unix socket.", default_text="required"
    )
    port: Annotated[Whole, AfterValidator(_port)] = key(5432, "Port.")
    database: Text = key("", "Database.", default_text="required")
    user: Text = key("", "User. Needs REPLICATION and SELECT on the tables.", default_text="required")
    password: Secret | None = key(None, "Password.", default_text="libpq's (`PGPASSWORD`, `~/.pgpass`)")
    sslmode: Annotated[SslMode, Choice, BeforeValidator(_ssl_mode)] = key(
        "prefer", "libpq's TLS mode. `off` and `false` mean `disable`.", upstream="`disable`"
    )
    sslrootcert: Text | None = key(None, "File with the certificates of trusted authorities, or `system`.")
    sslcert: Text | None = key(None, "File with the client certificate.")
    sslkey: Text | None = key(None, "File with the key of the client certificate.")
    sslpassword: Secret | None = key(None, "Password of `sslkey`.")
    connect_timeout: Annotated[Duration, at_least(1, "1s")] = key(10.0, "How long to wait for a connection.")
    application_name: Text = key("icestream", "Name shown in `pg_stat_activity`.")
    options: Text | None = key(None, "Server settings for the session, as in `-c search_path=app`.")
    parameters: Annotated[Properties, AfterValidator(_parameters)] = key(
        {},
        "Any other libpq connection parameter, for instance `sslcrl`, `ssl_min_protocol_version`, `keepalives_idle`.",
        show=False,
    )

    def conninfo(self) -> str:
        """libpq's connection string, escaped. Contains the password: never log it."""
        from psycopg.conninfo import make_conninfo

        given = {
            "host": self.host,
            "port": str(self.port),
            "dbname": self.database,
            "user": self.user,
            "password": _revealed(self.password),
            "sslmode": self.sslmode,
            "sslrootcert": self.sslrootcert,
            "sslcert": self.sslcert,
            "sslkey": self.sslkey,
            "sslpassword": _revealed(self.sslpassword),
            "connect_timeout": str(max(1, round(self.connect_timeout))),
            "application_name": self.application_name,
            "options": self.options,
            **self.parameters,
        }
        return make_conninfo(**{name: value for name, value in given.items() if value})


def _revealed(secret: Secret | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


class LogicalSettings(Section):
    publication_name: Annotated[Text, AfterValidator(identifier)] = key(
        "pg2iceberg_pub", "Publication; created if it is missing, and then of use to this pipeline only."
    )
    slot_name: Annotated[Text, AfterValidator(_slot_name)] = key(
        "pg2iceberg_slot", "Replication slot; created if it is missing."
    )
    standby_interval: Annotated[Duration, at_least(0.1, "100ms")] = key(
        10.0, "How often the server hears how far we are, at least.", upstream="10s, fixed in the Rust version"
    )
    watch_interval: Annotated[Duration, at_least(0.1, "100ms")] = key(
        10.0,
        "How often the source is looked at for what the stream does not tell: tables that were rewritten, renamed, "
        "dropped or altered, partitions that came or went, whatever the preflight would say, WAL that the slot keeps.",
        upstream="30s, fixed",
    )
    slot_budget: Annotated[ByteSize, at_least(1)] = key(
        10 * 1024**3,
        "WAL that the server may keep for the slot before there is a warning, in the log and in `icestream status`.",
    )
    snapshot_concurrency: Annotated[Whole, at_least(1)] | None = key(
        None,
        "Ranges of first copies that a worker reads at once, of all its tables together.",
        default_text="number of cores of `spark.master`",
        upstream="number of cores in the Go version",
    )
    snapshot_chunk_pages: Annotated[Whole, at_least(1)] = key(
        2048, "Pages of the table in one range of the first copy; each range is read by a Spark task."
    )
    snapshot_target_file_size: Annotated[ByteSize, at_least(1)] | None = key(
        None,
        "A file of the first copy that has reached this size is closed, and the range goes on in the next one. "
        "Files of partitioned tables are sized by Spark.",
        default_text="the table property `write.target-file-size-bytes`, else 128mb",
        upstream="128mb in the Go version",
    )


class QuerySettings(Section):
    poll_interval: Annotated[Duration, at_least(0.1, "100ms")] = key(
        30.0,
        "How often tables are polled.",
        notice="is used only in query mode (`source.mode: query`), and the mode is logical",
        upstream="5s in the Go version",
    )


class SourceSettings(Section):
    mode: Annotated[Mode, Choice] = key(
        "logical", "`logical` (replication) or `query` (polling). Only `logical` is part of this version."
    )
    postgres: PostgresSettings = key(PostgresSettings(), "The database.")
    logical: LogicalSettings = key(LogicalSettings(), "Logical replication.")
    query: QuerySettings = key(QuerySettings(), "Polling.")
