"""Tables: how they are named, what a relation looked like, where a table stands."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass, field

import msgspec

from icestream.model.type_rules import DEFAULT_RULES, TypeRules

# Iceberg's metadata columns: a table with a column of such a name can be created and filled, but not updated.
RESERVED_NAMES = frozenset(
    ("_file", "_pos", "_spec_id", "_partition", "_deleted", "_row_id", "_last_updated_sequence_number")
)


@dataclass(frozen=True, order=True)
class TableName:
    """A table in the source: `schema.table`, split at the first dot."""

    schema: str
    name: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        schema, dot, name = text.partition(".")
        if not (schema and dot and name):
            raise ValueError(f"{text!r} is not of the form schema.table")
        return cls(schema, name)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column as the Relation message tells it, and below that what only the source's catalog knows."""

    name: str
    type_oid: int
    typmod: int = -1
    is_key: bool = False  # part of the replica identity
    number: int = 0  # a rename keeps it, a new column never gets it again; 0: not known
    is_primary: bool = False  # part of the primary key
    base_oid: int = 0  # of a domain, the type it is made of; 0: the type is no domain
    base_typmod: int = -1
    element_oid: int = 0  # of an array (or a domain over one), the type of its elements; 0: no array
    missing: str | None = None  # what rows from before the column hold in it; None: NULL
    is_filled: bool = False  # they hold something that no constant tells

    def as_told(self) -> Column:
        """Without what the catalog added."""
        return Column(self.name, self.type_oid, self.typmod, self.is_key)


class Relation(msgspec.Struct, frozen=True):
    """One version of a source table's shape. Travels in the metadata of every staged file."""

    oid: int
    schema: str
    name: str
    identity: str  # pg_class.relreplident: d, n, f or i
    columns: tuple[Column, ...]

    @property
    def table(self) -> TableName:
        return TableName(self.schema, self.name)

    @property
    def is_full(self) -> bool:
        """Whether every change carries the whole old row (REPLICA IDENTITY FULL)."""
        return self.identity == "f"

    @property
    def naming(self) -> tuple[str, ...]:
        """The columns by which changes name their old rows; none: by all of them, or not at all."""
        return () if self.is_full else tuple(column.name for column in self.columns if column.is_key)

    @property
    def is_numbered(self) -> bool:
        return all(column.number for column in self.columns)

    def as_told(self) -> Relation:
        """As the stream tells it, without what the catalog added."""
        columns = tuple(column.as_told() for column in self.columns)
        return Relation(self.oid, self.schema, self.name, self.identity, columns)

    @property
    def version(self) -> str:
        """Names the shape: equal shapes have equal versions, across processes and restarts."""
        return hashlib.sha256(self.to_json()).hexdigest()[:16]

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, data: bytes | str) -> Relation:
        return msgspec.json.decode(data, type=cls)


class TableState(enum.StrEnum):
    """Where a replicated table stands in a group. Stored in `tables.state`.

    PENDING   set by capture when the table is new, or its copy snapshot was lost; waits for a snapshot
    COPYING   set by capture once a snapshot is exported; the assigned worker copies at it
    LIVE      set by the worker after the copy is published; cycles apply the log
    PARKED    set by a worker or by capture with a reason; only `icestream resume` (a worker had parked it, and its
              log is still there) or `icestream resync` leaves it
    REMOVED   set by capture when the table is no longer in the settings, or by a worker when it is not in those of its
              group; nothing is done
    """

    PENDING = "pending"
    COPYING = "copying"
    LIVE = "live"
    PARKED = "parked"
    REMOVED = "removed"


class WriteMode(enum.StrEnum):
    """How changes are written to an Iceberg table."""

    MERGE = "merge"  # row-level deletes beside the data files, by position
    COPY_ON_WRITE = "copy-on-write"  # data files are written anew
    APPEND = "append"  # every change is a row of its own
    EQUALITY = "equality"  # row-level deletes by key


class Target(msgspec.Struct, frozen=True):
    """The Iceberg side of a table, as the settings ask for it. Stored with the table, so that all workers agree."""

    namespace: str
    name: str
    format_version: int = 3
    write_mode: WriteMode = WriteMode.MERGE
    primary_key: tuple[str, ...] = ()
    is_key_found: bool = False  # the key was found in the source, and may change there; else the settings name it
    partition: tuple[str, ...] = ()
    sort_order: tuple[str, ...] = ()
    location: str | None = None  # of a new table; None: where the catalog puts it
    properties: dict[str, str] = {}
    skip_snapshot: bool = False
    add_column_default: str = "backfill"  # or "null"
    rename_column: str = "rename"  # or "drop_add"
    drop_column: str = "keep"  # or "drop"
    types: TypeRules = DEFAULT_RULES

    @property
    def is_changelog(self) -> bool:
        """Whether its rows are changes, and not the rows of the source."""
        return self.write_mode == WriteMode.APPEND

    @property
    def key(self) -> str:
        """Capture's target names the table in the log and in the cursors, for all groups (`TableRow.key`)."""
        return f"{self.namespace}.{self.name}"


def matching_key(relation: Relation, target: Target) -> frozenset[str]:
    """The replica identity is the key, as deletes could not be matched otherwise; under FULL, the primary key.

    That is the source's as it is now, unless the settings name another one. Empty: there is none, or none any more.
    """
    if not relation.is_full:
        return frozenset(column.name for column in relation.columns if column.is_key)
    found = frozenset(column.name for column in relation.columns if column.is_primary)
    if found and (target.is_key_found or not target.primary_key):
        return found
    named = frozenset(target.primary_key)
    return named if named <= {column.name for column in relation.columns} else frozenset()


@dataclass(frozen=True)
class Profile:
    """What a staged file contains, counted while it was written; lets a cycle skip what it does not need."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    truncates: int = 0
    sets: int = 0
    rekeyed: int = 0  # updates that carry an old key or an old row
    unchanged: int = 0  # rows with an unchanged TOAST value

    def __add__(self, other: Profile) -> Profile:
        return Profile(*(a + b for a, b in zip(self.counts(), other.counts(), strict=True)))

    def counts(self) -> tuple[int, ...]:
        return (
            self.inserts,
            self.updates,
            self.deletes,
            self.truncates,
            self.sets,
            self.rekeyed,
            self.unchanged,
        )

    @property
    def records(self) -> int:
        return self.inserts + self.updates + self.deletes + self.truncates + self.sets


@dataclass(frozen=True)
class StagedFile:
    """An uploaded file of changes of one table (and one relation version) that is not claimed yet."""

    table: str
    path: str  # relative to the staging root
    record_count: int
    byte_size: int
    last_lsn: int
    relation: Relation
    profile: Profile = field(default_factory=Profile)
    first_commit_at: float | None = None  # seconds since 1970; the oldest commit in it
