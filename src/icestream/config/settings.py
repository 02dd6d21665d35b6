"""The whole of the settings. `load.load` makes them; everything else only reads them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, model_validator

from icestream.config.conninfo import faults_in, parse_conninfo, what_is_wrong
from icestream.config.masking import redacted
from icestream.config.scalars import Choice, Duration, Flag, Named, Secret, Text, at_least, refuse
from icestream.config.section import Section, key
from icestream.config.sink import SinkSettings
from icestream.config.source import MAX_IDENTIFIER_BYTES, SourceSettings
from icestream.config.spark import SparkSettings, not_blank
from icestream.config.tables import TableSettings
from icestream.config.types import TypeSettings
from icestream.model.table import TableName, Target, WriteMode
from icestream.model.type_rules import TypeRules, Unfit

DEFAULT_COORDINATOR_SCHEMA = "_pg2iceberg"
LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.%]+)\]|(?P<host>[^:\[\]\s]*)):(?P<port>[0-9]{1,5})")


def _coordinator_schema(value: str) -> str:
    """Lower case, everything but letters, digits and underscores replaced: it needs no quotes anywhere."""
    name = re.sub(r"[^a-z0-9_]", "_", value.lower()) or DEFAULT_COORDINATOR_SCHEMA
    if name.startswith("pg_"):
        raise refuse("must not start with pg_: PostgreSQL keeps such names for itself")
    if len(name) > MAX_IDENTIFIER_BYTES:
        raise refuse(f"must be at most {MAX_IDENTIFIER_BYTES} characters")
    return name


def _conninfo(value: Secret) -> Secret:
    parameters = parse_conninfo(value.get_secret_value())
    if parameters is None:
        raise refuse(what_is_wrong(value.get_secret_value()))
    if faults := faults_in(parameters):
        raise refuse("; and it ".join(faults))
    return value


def _metrics_address(value: str) -> str:
    found = _ADDRESS.fullmatch(value)
    if value and (found is None or int(found["port"]) > 65535):
        raise refuse("must be host:port or :port, for instance :9090 or 0.0.0.0:9090")
    return value


class StateSettings(Section):
    postgres_url: Annotated[Secret, AfterValidator(_conninfo)] | None = key(
        None, "Database of the coordination schema.", default_text="the source database"
    )
    coordinator_schema: Annotated[Text, AfterValidator(_coordinator_schema)] = key(
        DEFAULT_COORDINATOR_SCHEMA,
        "Coordination schema. Lower-cased; what is not a letter, a digit or an underscore becomes an underscore.",
    )
    group: Annotated[Text, AfterValidator(not_blank)] = key(
        "default", "Group of workers. Each group materializes the whole log once, into its own tables."
    )
    pipeline: Annotated[Text, AfterValidator(not_blank)] | None = key(
        None,
        "Name under which this pipeline is remembered; several may share a coordination schema.",
        default_text="`source.logical.slot_name`",
    )
    consumer_ttl: Annotated[Duration, at_least(1, "1s")] = key(
        30.0, "A worker that was not heard of for this long loses its tables.", upstream="30s, fixed"
    )
    log_retention: Annotated[Duration, at_least(1, "1s")] = key(
        60.0, "Staged files are kept for at least this long, and until every group has passed them."
    )
    parked_retention: Annotated[Duration, at_least(0, "0s")] = key(
        86400.0,
        "The log of a parked table is kept for this long, so that `icestream resume` can bring it back; then only"
        " `icestream resync` does.",
    )
    upload_grace: Annotated[Duration, at_least(1, "1s")] = key(
        3600.0, "An upload that was not claimed within this time is given up and removed."
    )
    path: Text | None = key(
        None,
        "File of the Go version's file store.",
        notice="has no effect: positions are kept in PostgreSQL (`state.postgres_url`, `state.coordinator_schema`), "
        "where all processes of a pipeline see them; what the file says is not taken over",
    )


class SchemaSettings(Section):
    @model_validator(mode="before")
    @classmethod
    def _a_key_without_value_is_not_set(cls, data: Any) -> Any:
        """Here `null` is a word: YAML's reading of it is what was meant."""
        if not isinstance(data, dict):
            return data
        return {name: "null" if value is None else value for name, value in data.items()}

    add_column_default: Annotated[Literal["backfill", "null"], Choice] = key(
        "backfill", "What old rows hold in a column that the source added with a constant DEFAULT: that, or NULL."
    )
    rename_column: Annotated[Literal["rename", "drop_add"], Choice] = key(
        "rename", "A column that was renamed in the source: renamed, or another column beside the old one."
    )
    drop_column: Annotated[Literal["keep", "drop"], Choice] = key(
        "keep", "A column that was dropped in the source: kept, with NULL in rows from then on, or dropped."
    )


class Settings(Section):
    tables: Annotated[tuple[TableSettings, ...], Named("list")] = key((), "Which tables are replicated.")
    source: SourceSettings = key(SourceSettings(), "Where changes come from.")
    sink: SinkSettings = key(default_factory=SinkSettings, description="Where they go.")
    types: TypeSettings = key(TypeSettings(), "What PostgreSQL's types become.")
    state: StateSettings = key(StateSettings(), "What is remembered between steps, and where.")
    schema_: SchemaSettings = key(SchemaSettings(), "What becomes of changes of a table's shape.", alias="schema")
    spark: SparkSettings = key(SparkSettings(), "The Spark session.")
    metrics_addr: Annotated[Text, AfterValidator(_metrics_address)] = key(
        "",
        "Serves `/metrics`, `/live` and `/ready` at this `host:port`. `:port` means this machine only.",
        default_text="off",
        upstream="`:9090` on all interfaces in the Go version",
    )
    snapshot_only: Flag = key(
        False,
        "`run` ends when all tables are copied, and workers only copy, as with `icestream snapshot`. Changes since the "
        "copy wait in the log, or in the slot, for the next run without it.",
    )

    @model_validator(mode="after")
    def _agree_with_themselves(self) -> Settings:
        from icestream.config.checks import Mistakes, mistakes_in

        found = tuple(mistakes_in(self))
        if found:
            raise Mistakes(found)
        return self

    @property
    def pipeline(self) -> str:
        return self.state.pipeline or self.source.logical.slot_name

    def state_conninfo(self) -> str:
        """Where the coordination schema is. May contain a password: never log it."""
        url = self.state.postgres_url
        return url.get_secret_value() if url is not None else self.source.postgres.conninfo()

    def metrics_endpoint(self) -> tuple[str, int] | None:
        """Host and port to listen at, or None for no server."""
        found = _ADDRESS.fullmatch(self.metrics_addr)
        if found is None:
            return None
        return found["v6"] or found["host"] or LOOPBACK, int(found["port"])

    def entry_for(self, table: TableName) -> TableSettings | None:
        """The entry of `tables` that a source table belongs to: the one that names it in full, else the first match."""
        matching = [entry for entry in self.tables if entry.matches(table)]
        return min(matching, key=lambda entry: entry.is_pattern, default=None)

    def target_for(self, table: TableName) -> Target | None:
        """What a source table becomes in Iceberg; None if it is not replicated."""
        entry = self.entry_for(table)
        return None if entry is None else self.target_of(entry, table)

    def target_of(self, entry: TableSettings, table: TableName) -> Target:
        """The Iceberg side of a source table under a given entry."""
        # Dots in a source table's name stay in the name; in `iceberg.name` one sets off the namespace.
        namespace, _, name = entry.iceberg.name.rpartition(".") if entry.iceberg.name else ("", "", table.name)
        return Target(
            namespace=namespace or self.sink.namespace or table.schema,
            name=name,
            format_version=entry.iceberg.format_version or self.sink.format_version,
            write_mode=WriteMode(entry.iceberg.write_mode or self.sink.write_mode),
            primary_key=entry.primary_key,
            partition=tuple(str(field) for field in entry.iceberg.partition),
            sort_order=tuple(str(field) for field in entry.iceberg.sort_order),
            location=entry.iceberg.location,
            properties={**self._file_size(), **entry.iceberg.properties},
            skip_snapshot=entry.skip_snapshot,
            add_column_default=self.schema_.add_column_default,
            rename_column=self.schema_.rename_column,
            drop_column=self.schema_.drop_column,
            types=self._type_rules(entry),
        )

    def _file_size(self) -> dict[str, str]:
        size = self.sink.materializer_target_file_size
        return {"write.target-file-size-bytes": str(size)} if size else {}

    def _type_rules(self, entry: TableSettings) -> TypeRules:
        types, own = self.types, entry.iceberg.unfit
        return TypeRules(
            numeric=types.numeric,
            uuid=types.uuid,
            json=types.json_,
            arrays=types.arrays,
            unfit=Unfit(own if isinstance(own, str) else types.unfit),
            unfit_columns={name: Unfit(policy) for name, policy in own.items()} if isinstance(own, dict) else {},
        )

    def redacted(self) -> dict[str, Any]:
        """All values, fit for a status page: secrets are masked, durations and sizes written out."""
        return redacted(self)
