"""What the types of the single keys can't say: required keys, keys that need or exclude each other, and what is not
part of this version. Runs once all keys have the right type, and finds everything at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from icestream.config import catalog
from icestream.config.conninfo import missing_files, parse_conninfo
from icestream.config.locations import is_bare_name
from icestream.config.partition import clashes
from icestream.config.section import Path
from icestream.model.table import TableName

if TYPE_CHECKING:
    from icestream.config.settings import Settings
    from icestream.config.sink import SinkSettings
    from icestream.config.tables import TableSettings

_CATALOG: tuple[Path, ...] = (("sink", "catalog"), ("sink", "catalog_uri"))
_WAREHOUSE: Path = ("sink", "warehouse")
_NOT_YET = "is not part of this version"


@dataclass(frozen=True)
class Mistake:
    path: Path
    reason: str  # continues the sentence that starts with the path
    value: object = None  # shown only where the reason is about it
    rests_on: tuple[Path, ...] = ()  # other keys; the mistake is not reported while one of them is wrong itself


class Mistakes(ValueError):
    """Carries all mistakes through pydantic."""

    def __init__(self, found: tuple[Mistake, ...]) -> None:
        super().__init__(f"{len(found)} settings do not fit together")
        self.found = found


def mistakes_in(settings: Settings) -> Iterator[Mistake]:
    yield from _tables(settings)
    yield from _targets(settings)
    yield from _table_locations(settings)
    yield from _source(settings)
    yield from _state(settings)
    yield from _types(settings)
    yield from _sink(settings.sink)
    yield from _catalog(settings.sink)
    yield from _signing_in(settings.sink)
    yield from _credentials(settings.sink)


def _tables(settings: Settings) -> Iterator[Mistake]:
    if not settings.tables:
        yield Mistake(("tables",), "at least one table is required; set `tables`, or the variable TABLES")
    counts = Counter(entry.name for entry in settings.tables)
    seen: set[str] = set()
    for index, entry in enumerate(settings.tables):
        path = ("tables", index)
        if entry.name and counts[entry.name] > 1 and entry.name in seen:
            yield Mistake((*path, "name"), "is already in the list", entry.name)
        seen.add(entry.name)
        yield from _table(path, entry)


def _table(path: Path, entry: TableSettings) -> Iterator[Mistake]:
    if not entry.name:
        yield Mistake((*path, "name"), "is required, of the form schema.table")
    elif not entry.is_pattern and entry.exclude:
        yield Mistake((*path, "exclude"), "has a meaning only where `name` is a pattern such as public.*")
    elif entry.is_pattern and entry.iceberg.name:
        yield Mistake(
            (*path, "iceberg", "name"), "would give every table of a pattern the same name", entry.iceberg.name
        )
    if entry.is_pattern and entry.iceberg.location:
        reason = "would put the files of every table of a pattern into the same place"
        yield Mistake((*path, "iceberg", "location"), reason, entry.iceberg.location)
    for clash in clashes(entry.iceberg.partition):
        yield Mistake((*path, "iceberg", "partition"), clash)
    yield from _repeated((*path, "primary_key"), entry.primary_key)
    yield from _columns(path, entry)


def _columns(path: Path, entry: TableSettings) -> Iterator[Mistake]:
    for index, column in enumerate(entry.columns):
        for name in ("name", "pg_type"):
            if not getattr(column, name):
                yield Mistake((*path, "columns", index, name), "is required")
    names = tuple(column.name for column in entry.columns if column.name)
    yield from _repeated((*path, "columns"), names)
    if names:
        for name in entry.primary_key:
            if name not in names:
                yield Mistake((*path, "primary_key"), f"names {name!r}, which is not in `columns`")


def _repeated(path: Path, names: tuple[str, ...]) -> Iterator[Mistake]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Mistake(path, f"names the column {name!r} twice")


def _targets(settings: Settings) -> Iterator[Mistake]:
    """Two sources of one Iceberg table. Tables behind patterns are known only when the source is read."""
    first: dict[str, str] = {}
    for index, entry in enumerate(settings.tables):
        if not entry.name or entry.is_pattern:
            continue
        target = settings.target_of(entry, TableName.parse(entry.name)).key
        other = first.setdefault(target, entry.name)
        if other != entry.name:
            reason = f"would be written to the Iceberg table {target}, and so would {other}; set `iceberg.name` for one"
            yield Mistake(("tables", index, "name"), reason, entry.name)


def _table_locations(settings: Settings) -> Iterator[Mistake]:
    kind = catalog.type_of(settings.sink.catalog, settings.sink.catalog_uri)
    first: dict[str, str] = {}
    for index, entry in enumerate(settings.tables):
        location, path = entry.iceberg.location, ("tables", index, "iceberg", "location")
        if location is None or entry.is_pattern:
            continue
        if kind == "hadoop":
            yield Mistake(path, "a hadoop catalog puts every table below its warehouse", location, _CATALOG)
        other = first.setdefault(location, entry.name)
        if other != entry.name:
            yield Mistake(path, f"is already that of {other}", location)


def _source(settings: Settings) -> Iterator[Mistake]:
    if settings.source.mode == "query":
        yield Mistake(("source", "mode"), f"polling {_NOT_YET}; use logical", "query")
    postgres = settings.source.postgres
    for name in ("host", "database", "user"):
        if not getattr(postgres, name):
            variable = f"POSTGRES_{name.upper()}"
            reason = f"is required; set it, or source.postgres.url (variables {variable}, POSTGRES_URL)"
            yield Mistake(("source", "postgres", name), reason)
    own = {name: getattr(postgres, name) for name in ("sslrootcert", "sslcert", "sslkey")}
    for name, file in missing_files(own).items():
        yield Mistake(("source", "postgres", name), "is not a file that can be read here", file)


def _state(settings: Settings) -> Iterator[Mistake]:
    url = settings.state.postgres_url
    for name in missing_files(parse_conninfo(url.get_secret_value()) or {}) if url is not None else ():
        yield Mistake(("state", "postgres_url"), f"has an {name} that is not a file that can be read here")


def _types(settings: Settings) -> Iterator[Mistake]:
    versions = {entry.iceberg.format_version or settings.sink.format_version for entry in settings.tables}
    if settings.types.json_ == "variant" and 2 in versions:
        reason = "needs format_version 3 for every table; use string, or leave out format_version"
        yield Mistake(("types", "json"), reason, "variant", (("sink", "format_version"),))


def _sink(sink: SinkSettings) -> Iterator[Mistake]:
    if sink.publish != "per-table":
        yield Mistake(("sink", "publish"), f"publishing all tables in one step {_NOT_YET}; use per-table", sink.publish)
    if not sink.warehouse:
        yield Mistake(_WAREHOUSE, "is required; set it, or the variable WAREHOUSE")
    elif not sink.staging and is_bare_name(sink.warehouse):
        reason = "is required: the warehouse is a name that only the catalog understands, so say where staged files go"
        yield Mistake(("sink", "staging"), reason, rests_on=(*_CATALOG, _WAREHOUSE))


def _catalog(sink: SinkSettings) -> Iterator[Mistake]:
    kind = catalog.type_of(sink.catalog, sink.catalog_uri)
    if catalog.describes_a_catalog(sink.catalog) and sink.catalog_uri:
        yield Mistake(("sink", "catalog_uri"), "and sink.catalog both describe the catalog; keep one", sink.catalog_uri)
    elif sink.catalog_uri and not sink.catalog_uri.lower().startswith(("http://", "https://")):
        reason = (
            "must be the http:// or https:// address of a REST catalog; other catalogs are described by sink.catalog"
        )
        yield Mistake(("sink", "catalog_uri"), reason, sink.catalog_uri)
    elif kind is None:
        yield from _embedded_catalog(sink)
    elif kind == "" and "catalog-impl" not in sink.catalog:
        yield Mistake(("sink", "catalog"), f"needs `type` ({', '.join(catalog.TYPES)}) or `catalog-impl`")
    elif kind and kind not in catalog.TYPES:
        near = get_close_matches(kind, catalog.TYPES, 1)
        wish = f"; did you mean {near[0]}?" if near else ""
        yield Mistake(("sink", "catalog", "type"), f"must be one of {', '.join(catalog.TYPES)}{wish}", kind)
    elif kind == "hadoop":
        yield from _hadoop_catalog(sink)
    elif kind == "jdbc" and not sink.catalog_properties().get("uri", "").startswith("jdbc:"):
        reason = "must be a JDBC address such as jdbc:sqlite:/lake/catalog.db or jdbc:postgresql://host/database"
        yield Mistake(("sink", "catalog", "uri"), reason, sink.catalog.get("uri"))


def _embedded_catalog(sink: SinkSettings) -> Iterator[Mistake]:
    if sink.warehouse and sink.local_warehouse is None:
        reason = "the embedded catalog needs a local warehouse; set sink.catalog or sink.catalog_uri for this one"
        yield Mistake(("sink", "catalog"), reason, rests_on=(*_CATALOG, _WAREHOUSE))
    elif "?" in sink.warehouse:
        yield Mistake(_WAREHOUSE, "must not contain ? with the embedded catalog", sink.warehouse)


def _hadoop_catalog(sink: SinkSettings) -> Iterator[Mistake]:
    warehouse = sink.catalog_properties().get("warehouse", "/")
    if not warehouse.startswith("/"):
        reason = "a hadoop catalog has no atomic commit outside a local folder; use a rest, jdbc, hive or glue catalog"
        yield Mistake(("sink", "catalog", "type"), reason, "hadoop")


def _signing_in(sink: SinkSettings) -> Iterator[Mistake]:
    auth = sink.catalog_auth
    if auth != "none" and catalog.type_of(sink.catalog, sink.catalog_uri) != "rest":
        yield Mistake(
            ("sink", "catalog_auth"), "has a meaning only for a REST catalog; set sink.catalog_uri", auth, _CATALOG
        )
    for name in catalog.NEEDED_BY_AUTH.get(auth, ()):
        if not getattr(sink, name):
            yield Mistake(("sink", name), f"is required by catalog_auth: {auth}", rests_on=(("sink", "catalog_auth"),))


def _credentials(sink: SinkSettings) -> Iterator[Mistake]:
    mode, given = sink.credential_mode, (bool(sink.s3_access_key), bool(sink.s3_secret_key))
    if mode == "vended" and catalog.type_of(sink.catalog, sink.catalog_uri) != "rest":
        yield Mistake(("sink", "credential_mode"), "only a REST catalog hands out credentials", mode, _CATALOG)
    if given == (False, True) or (mode == "static" and catalog.uses_s3(sink) and not given[0]):
        yield Mistake(("sink", "s3_access_key"), "is required beside s3_secret_key, and by credential_mode: static")
    if given == (True, False) or (mode == "static" and catalog.uses_s3(sink) and not given[1]):
        yield Mistake(("sink", "s3_secret_key"), "is required beside s3_access_key, and by credential_mode: static")
