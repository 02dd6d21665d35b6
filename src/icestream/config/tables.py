"""`tables`: which tables are replicated, and what each becomes in Iceberg."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, model_validator

from icestream.config.locations import absolute
from icestream.config.partition import PartitionField, SortField
from icestream.config.scalars import Choice, Flag, Named, Properties, Text, TextList, Whole, refuse
from icestream.config.section import Section, key
from icestream.config.types import UnfitByColumn
from icestream.model.table import TableName
from icestream.model.type_names import OIDS

FormatVersion = Literal[2, 3]
WriteMode = Literal["merge", "copy-on-write", "append", "equality"]

_MODES = ("write.delete.mode", "write.update.mode", "write.merge.mode")


def _pg_type(value: str) -> str:
    name = " ".join(value.lower().split())
    if name not in OIDS:
        raise refuse(f"is not a known PostgreSQL type; known are {', '.join(sorted(OIDS))}")
    return name


def _table_name(value: str) -> str:
    try:
        TableName.parse(value)
    except ValueError:
        raise refuse("must be of the form schema.table; patterns such as public.* are taken too") from None
    return value


def _target_name(value: str) -> str:
    if value.count(".") > 1 or not all(value.split(".")):
        raise refuse("must be `table` or `namespace.table`")
    return value


def parse_partition_field(value: Any) -> PartitionField:
    if isinstance(value, PartitionField):
        return value
    if not isinstance(value, str):
        raise refuse("must be a text with a partition expression")
    try:
        return PartitionField.parse(value)
    except ValueError as err:
        raise refuse(str(err)) from err


def parse_sort_field(value: Any) -> SortField:
    if isinstance(value, SortField):
        return value
    if not isinstance(value, str):
        raise refuse("must be a text such as `created_at desc`")
    try:
        return SortField.parse(value)
    except ValueError as err:
        raise refuse(str(err).replace("partition expression", "sort expression")) from err


def _location(value: str) -> str:
    if not value:
        raise refuse("must be a folder or a URI")
    return absolute(value)


def _properties_of_a_table(value: dict[str, str]) -> dict[str, str]:
    for name in value:
        if name.startswith("icestream."):
            raise refuse(f"sets {name}; properties that start with icestream. are Icestream's own memory")
        if name == "format-version":
            raise refuse("sets format-version; use the key format_version beside `properties`")
        if name in _MODES:
            raise refuse(f"sets {name}; use the key write_mode beside `properties`")
    return value


Partition = Annotated[
    PartitionField,
    Named("partition expression"),
    PlainSerializer(str),
    BeforeValidator(parse_partition_field),
]


Sorting = Annotated[
    SortField,
    Named("sort expression"),
    PlainSerializer(str),
    BeforeValidator(parse_sort_field),
]


def _format_version(value: int) -> int:
    if value not in (2, 3):
        raise refuse("must be 2 or 3 (version 1 has no row-level deletes)")
    return value


FormatVersionKey = Annotated[Whole, Named("2 or 3"), AfterValidator(_format_version)]
WriteModeKey = Annotated[WriteMode, Choice]


class ColumnSettings(Section):
    name: Text = key(
        "",
        "A column that the source table has to have. `columns` is compared with the source when a pipeline starts, and "
        "by `icestream check`: a column that is not there or has another type stops the start, and columns that are "
        "not named get a warning. What is replicated is what the source has.",
        default_text="required",
        upstream="with `columns`, the source is not asked for them",
    )
    pg_type: Annotated[Text, AfterValidator(_pg_type)] = key(
        "", "Its PostgreSQL type, without length or precision. All kinds of text count as one.", default_text="required"
    )
    nullable: Flag = key(
        False, "Whether it may hold NULL. A source that allows it although this says false gets a warning."
    )


class IcebergTableSettings(Section):
    """What `tables[].iceberg` may say about the Iceberg table. What is not set comes from `sink`."""

    name: Annotated[Text, AfterValidator(_target_name)] | None = key(
        None,
        "Name of the Iceberg table, as `table` or `namespace.table`.",
        default_text="the name of the source table",
    )
    partition: Annotated[tuple[Partition, ...], Named("list of partition expressions")] = key(
        (),
        "Partition expressions: `col`, `identity(col)`, `year|month|day|hour(col)`, `bucket[N](col)`, "
        "`truncate[W](col)`. Another list later partitions what is written from then on; old files stay as they are.",
    )
    sort_order: Annotated[tuple[Sorting, ...], Named("list of sort expressions")] = key(
        (),
        "Order of the rows within files that Spark writes: partition expressions, each followed by `asc` or `desc`, "
        "and by `nulls first` or `nulls last`, if wanted. Another list later orders what is written from then on.",
    )
    location: Annotated[Text, AfterValidator(_location)] | None = key(
        None,
        "Where the files of a new table lie: a folder or a URI. A table that is there stays where it is.",
        default_text="the catalog's choice",
    )
    properties: Annotated[Properties, AfterValidator(_properties_of_a_table)] = key(
        {}, "Iceberg table properties. Others later are set, and ones that are gone from the list are removed."
    )
    format_version: FormatVersionKey | None = key(
        None, "Iceberg format version of a new table.", default_text="`sink.format_version`"
    )
    write_mode: WriteModeKey | None = key(
        None, "How changes are written; see `sink.write_mode`.", default_text="`sink.write_mode`"
    )
    unfit: UnfitByColumn | None = key(
        None,
        "What becomes of values that Iceberg can't hold, for all columns or for some; see `types.unfit`.",
        default_text="`types.unfit`",
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_a_policy(cls, data: Any) -> Any:
        """And not a key without a value."""
        if isinstance(data, dict) and data.get("unfit", "") is None:
            return {**data, "unfit": "null"}
        return data


class TableSettings(Section):
    name: Annotated[Text, AfterValidator(_table_name)] = key(
        "",
        "`schema.table`, split at the first dot. `*` and `?` make it a pattern, for instance `public.*`. "
        "A table that several entries match belongs to the one that names it in full, else to the first. "
        "`tables` itself may be one text with names and commas, as the variable is.",
        default_text="required",
    )
    exclude: Annotated[tuple[Annotated[Text, AfterValidator(_table_name)], ...], Named("list of texts")] = key(
        (), "Tables, or patterns of tables, that a pattern in `name` leaves out; each `schema.table`."
    )
    skip_snapshot: Flag = key(False, "Leave out the first copy; only changes from now on are replicated.")
    primary_key: TextList = key(
        (),
        "Columns that identify a row. They have to be those of the table's replica identity (its primary key, unless"
        " it was changed), or the table has `REPLICA IDENTITY FULL`: then any that are unique.",
        default_text="the source's",
    )
    watermark_column: Text | None = key(
        None,
        "Column that orders changes when a table is polled.",
        notice="is used only in query mode (`source.mode: query`), and the mode is logical",
    )
    columns: Annotated[tuple[ColumnSettings, ...], Named("list of `name`, `pg_type`, `nullable`")] = key(
        (),
        "Columns that the table has to have; what is replicated is what the source has.",
    )
    iceberg: IcebergTableSettings = key(IcebergTableSettings(), "The Iceberg side of the table.")

    @property
    def is_pattern(self) -> bool:
        return _is_pattern(self.name)

    def matches(self, table: TableName) -> bool:
        return _matches(self.name, table) and not any(_matches(pattern, table) for pattern in self.exclude)


def _is_pattern(text: str) -> bool:
    return "*" in text or "?" in text


@lru_cache(maxsize=100_000)  # asked for every table and every entry, whenever the source is looked at
def _matches(pattern: str, table: TableName) -> bool:
    if not _is_pattern(pattern):
        return pattern == str(table)
    parts = TableName.parse(pattern)
    return _glob(parts.schema, table.schema) and _glob(parts.name, table.name)


def _glob(pattern: str, text: str) -> bool:
    # fnmatch's character sets are not part of our patterns: a bracket is a bracket.
    return fnmatchcase(text, pattern.replace("[", "[[]"))
