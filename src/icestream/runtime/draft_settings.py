"""The text of a settings file for a database that was looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from icestream.config.settings import Settings
from icestream.model.table import matching_key
from icestream.model.type_rules import DEFAULT_RULES
from icestream.model.types import Kind, target_type
from icestream.sources.postgres.catalog import CatalogColumn, SourceTable
from icestream.sources.postgres.sizes import TableSize
from icestream.verify.facts import TableFacts
from icestream.verify.findings import Finding, Severity

_LARGE = 1024**3
_VERY_LARGE = 32 * 1024**3
_TIMES = (Kind.TIMESTAMPTZ, Kind.TIMESTAMP, Kind.DATE)
_BIRTH = re.compile(r"creat|insert|occur|event|order|placed|^ts$|^at$|_at$|date", re.IGNORECASE)
_CHANGING = re.compile(r"updat|modif|delet|expir", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.$-]*")


@dataclass(frozen=True)
class Surveyed:
    """A table, its size, and what stands in its way."""

    facts: TableFacts
    size: TableSize | None
    findings: tuple[Finding, ...]

    @property
    def is_fit(self) -> bool:
        return not any(finding.severity is Severity.ERROR for finding in self.findings)


def settings_text(settings: Settings, tables: Sequence[Surveyed], findings: Sequence[Finding]) -> str:
    """YAML without any secret. What can't be replicated yet is there as a comment, with what repairs it."""
    return "\n".join([*_head(findings), *_tables(tables), *_source(settings), *_sink(settings), ""])


def _head(findings: Sequence[Finding]) -> Iterator[str]:
    yield "# Settings of Icestream. `icestream config reference` describes every key."
    if findings:
        yield "#\n# To be put right in the source first; `icestream check` says what is left:"
    for finding in findings:
        yield f"#   {finding.severity.value}: {finding}"
        if finding.hint:
            yield f"#     {finding.hint}"
    yield ""


def _tables(tables: Sequence[Surveyed]) -> Iterator[str]:
    yield "tables:" if any(table.is_fit for table in tables) else "tables: []  # none is fit yet"
    for table in sorted(tables, key=lambda table: (not table.is_fit, table.facts.choice.name)):
        yield from _table(table)
    yield ""


def _table(table: Surveyed) -> Iterator[str]:
    source, size = table.facts.table, table.size
    name = _scalar(str(table.facts.choice.name))
    if source is None or not table.is_fit:
        yield f"  # - name: {name}"
        if source is not None and not matching_key(source.relation(), table.facts.choice.target):
            yield "  #   iceberg: {write_mode: append}  # without a key it can only be a changelog"
        for finding in table.findings:
            yield f"  #   {finding}"
            yield f"  #     {finding.hint}"
        return
    about = "" if size is None else f"about {size.rows:,} rows, {size.bytes / 1024**2:,.0f} MB; "
    yield f"  - name: {name}  # {about}key: {', '.join(source.primary_key or source.identity_columns)}"
    if size is not None and size.bytes >= _LARGE and (column := _time_column(source)):
        unit = "day" if size.bytes >= _VERY_LARGE else "month"
        yield f"    # It is large, and {column.name} seems to say when a row came; readers of time spans gain by this:"
        yield f"    # iceberg: {{partition: [{_scalar(f'{unit}({column.name})')}]}}"


def _time_column(table: SourceTable) -> CatalogColumn | None:
    """A column that a row keeps for life; one that changes would move rows between partitions."""
    times = [
        column
        for column in table.columns
        if not column.is_generated
        and target_type(column.described(is_key=False, is_primary=False), DEFAULT_RULES).kind in _TIMES
        and not _CHANGING.search(column.name)
    ]
    return min(times, key=lambda column: (not _BIRTH.search(column.name), not column.not_null), default=None)


def _source(settings: Settings) -> Iterator[str]:
    postgres, logical = settings.source.postgres, settings.source.logical
    yield "source:"
    yield "  postgres:"
    yield f"    host: {_scalar(postgres.host)}"
    yield f"    port: {postgres.port}"
    yield f"    database: {_scalar(postgres.database)}"
    yield f"    user: {_scalar(postgres.user)}"
    yield "    # The password is taken from POSTGRES_PASSWORD (or libpq's PGPASSWORD, ~/.pgpass), or from a file:"
    yield "    # password_file: /run/secrets/postgres_password"
    yield f"    sslmode: {postgres.sslmode}"
    yield "  logical:"
    yield f"    slot_name: {logical.slot_name}  # also the name of the pipeline"
    yield f"    publication_name: {_scalar(logical.publication_name)}"
    yield ""


def _sink(settings: Settings) -> Iterator[str]:
    yield "sink:"
    yield f"  warehouse: {_scalar(settings.sink.warehouse)}  # a local folder, or s3://bucket/path with a catalog"
    yield "  # A REST catalog; without one, Icestream keeps a catalog beside the warehouse:"
    yield "  # catalog_uri: https://catalog.example.com"
    yield "  # namespace: shop  # of all tables; without it each table's PostgreSQL schema"


def _scalar(text: str) -> str:
    """Quoted where YAML would read something else, and with `$` kept as it is."""
    return (
        text.replace("$", "$$") if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False).replace("$", "$$")
    )
