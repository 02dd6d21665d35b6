"""Staged files to a frame of typed changes in log order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from pathlib import PurePosixPath

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from icestream.log.writer import format_of
from icestream.materialize.documents import documents_schema, from_documents
from icestream.materialize.shape import Shape
from icestream.materialize.values import typed, unfit
from icestream.model import change, changelog
from icestream.model.change import Op, StagingFormat
from icestream.model.columns import LakeColumn, naming_columns
from icestream.model.letters import LONGEST_KEY_PART, LONGEST_VALUE
from icestream.model.table import Relation
from icestream.model.types import FLOAT4_OID, Kind
from icestream.state.log_entries import LogEntry

_GLOB_PATHS = "__globPaths__"  # else a bracket in the warehouse's path is taken for a pattern
_FILES_IN_A_LITERAL = 32  # a literal map is searched one by one, for every row


def read_staged(
    session: SparkSession, root: str, entries: Sequence[LogEntry], relation: Relation, shape: Shape
) -> DataFrame:
    """The rows of `entries` (all of one relation version) with their offset in the table's log.

    Their texts lie under the names that the columns have in the table.
    """
    return _renamed(_read(session, root, entries, relation), relation, shape)


def _read(session: SparkSession, root: str, entries: Sequence[LogEntry], relation: Relation) -> DataFrame:
    columns = [entry for entry in entries if format_of(entry.path) is StagingFormat.COLUMNS]
    documents = [entry for entry in entries if format_of(entry.path) is StagingFormat.JSON]
    frames = [_located(session, root, columns, _staged_schema(relation))] if columns else []
    if documents:
        frames.append(from_documents(_located(session, root, documents, documents_schema()), relation))
    return union(frames)


def _located(session: SparkSession, root: str, entries: Sequence[LogEntry], schema: T.StructType) -> DataFrame:
    """The rows as the files have them, with their offsets."""
    starts = {PurePosixPath(entry.path).name: entry.start_offset for entry in entries}
    reader = session.read.option(_GLOB_PATHS, "false").schema(schema)
    frame = reader.parquet(*(f"{root}/{entry.path}" for entry in entries))
    row_index = F.col("_metadata.row_index")
    if len(starts) <= _FILES_IN_A_LITERAL:
        literal = F.create_map(*(F.lit(part) for pair in starts.items() for part in pair))
        return frame.select((F.element_at(literal, F.col("_metadata.file_name")) + row_index).alias("offset"), "*")
    table = F.broadcast(session.createDataFrame(list(starts.items()), "file string, start bigint"))
    located = frame.select("*", F.col("_metadata.file_name").alias("file"), row_index.alias("row_index"))
    joined = located.join(table, "file", how="inner")
    return joined.select((F.col("start") + F.col("row_index")).alias("offset"), *frame.columns)


def _renamed(staged: DataFrame, relation: Relation, shape: Shape) -> DataFrame:
    """Rows from before a change of the source table, in the form that it has now."""
    sources = shape.sources(relation)
    told_names = [column.name for column in shape.told]
    single = {column.name for column in relation.columns if (column.base_oid or column.type_oid) == FLOAT4_OID}
    is_same = [source for source, _ in sources] == [column.name for column in relation.columns] == told_names
    if is_same and not any(column.type.kind is Kind.DOUBLE and column.name in single for column in shape.told):
        return staged
    names = {source: column.name for column, (source, _) in zip(shape.told, sources, strict=True) if source}

    def text(tuple_: str, source: str, column: LakeColumn) -> Column:
        found = F.col(tuple_).getField(source)
        if source not in single or column.type.kind is not Kind.DOUBLE:
            return found
        return found.try_cast("float").cast("double")  # its text is as short as tells it apart from other floats

    def told(tuple_: str) -> Column:
        texts = (
            (F.lit(filler) if source is None else text(tuple_, source, column)).cast("string").alias(column.name)
            for column, (source, filler) in zip(shape.told, sources, strict=True)
        )
        return F.when(F.col(tuple_).isNotNull(), F.struct(*texts)).alias(tuple_)

    new_names = F.create_map(*(F.lit(part) for pair in names.items() for part in pair))
    unchanged = F.transform(change.UNCHANGED, lambda name: F.try_element_at(new_names, name)).alias(change.UNCHANGED)
    replaced = {change.DATA: told(change.DATA), change.OLD: told(change.OLD), change.UNCHANGED: unchanged}
    return staged.select(*(replaced.get(name, F.col(name)) for name in staged.columns))


def decode(staged: DataFrame, shape: Shape, *, after: int, told_apart_by: Collection[str] | None = None) -> DataFrame:
    """One row per change that committed after position `after`.

    offset, op      place in the log, operation
    key, old_key    structs of typed key columns; `old_key` only where an old tuple was sent
    row             struct of typed columns; of NULLs for a delete
    unchanged       names of the columns whose value was not sent
    unfit           whether a value, or the key, can't be held by the table and has no companion column
    new_text, old_text   under a full identity: what tells rows of one key apart, in the columns `told_apart_by`
    """
    new, old = F.col(change.DATA), F.col(change.OLD)
    is_delete = F.col(change.OP) == Op.DELETE
    # In two steps: each text is turned into its value once, and the rest is made of values.
    values = staged.filter(F.col(change.LSN) > after).select(
        "*",
        _typed_struct(new, shape.columns).alias("row"),
        F.struct(*(_key_value(is_delete, c).alias(c.name) for c in shape.keys)).alias("key"),
    )
    columns = [
        F.col("offset"),
        F.col(change.OP).alias("op"),
        F.col("key"),
        F.when(old.isNotNull(), _typed_struct(old, shape.keys)).alias("old_key"),
        F.col("row"),
        _unchanged(shape.columns).alias("unchanged"),
        _is_unfit(new, F.col("row"), shape.columns).alias("unfit"),
    ]
    if shape.full_identity:
        named = [c for c in shape.told if told_apart_by is None or c.name in told_apart_by]
        columns += [_texts(new, named).alias("new_text"), _texts(old, named).alias("old_text")]
    return values.select(*columns)


def unfit_values(staged: DataFrame, shape: Shape, *, after: int) -> DataFrame:
    """The dead letters of a batch: offset, lsn, key as JSON, column, text."""
    new, old = F.col(change.DATA), F.col(change.OLD)
    named = naming_columns(shape.columns)
    source_key = F.coalesce(_named(new, named), _named(old, named))
    letters = F.array(
        *(
            F.when(
                problem,
                F.struct(F.lit(column.name).alias("column"), _beginning(new, column, LONGEST_VALUE).alias("text")),
            )
            for column, problem in _problems(new, _typed_struct(new, shape.columns), shape.columns)
        )
    )
    present = F.filter(letters, lambda letter: letter.isNotNull())
    return (
        staged.filter(F.col(change.LSN) > after)
        .select("offset", F.col(change.LSN).alias("lsn"), _key_json(source_key, named), F.explode(present))
        .select("offset", "lsn", "key", "col.column", "col.text")
    )


def with_naming(staged: DataFrame, relation: Relation, shape: Shape) -> DataFrame:
    """With the columns by which changes of this relation name their old rows, as the table calls them."""
    sources = zip(shape.told, shape.sources(relation), strict=True)
    named = [column.name for column, (source, _) in sources if source in relation.naming]
    return staged.withColumn(changelog.KEY, F.array(*map(F.lit, named)).cast("array<string>"))


def changelog_rows(staged: DataFrame, shape: Shape, *, after: int) -> DataFrame:
    """One row per change that committed after position `after`, in the columns of a changelog.

    A delete's row holds what is known of the row that is gone.
    """
    new, old = F.col(change.DATA), F.col(change.OLD)
    told = F.when(F.col(change.OP) == Op.DELETE, old).otherwise(new)
    return staged.filter(F.col(change.LSN) > after).select(
        change.OP,
        change.LSN,
        F.col("offset").alias(changelog.OFFSET),
        change.TS,
        change.XID,
        changelog.KEY,
        _unchanged(shape.columns).alias(change.UNCHANGED),
        F.when(old.isNotNull(), _typed_struct(old, shape.columns)).alias(changelog.BEFORE),
        *(value_of(_text(told, column), column).alias(column.name) for column in shape.columns),
    )


def union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


def key_is_whole(key: Column, shape: Shape) -> Column:
    """False for a key with a part that is NULL or could not be decoded: such a row is never matched by it."""
    parts = (key.getField(column.name).isNotNull() for column in shape.keys)
    return reduce(lambda left, right: left & right, parts)


def _staged_schema(relation: Relation) -> T.StructType:
    text = T.StructType([T.StructField(column.name, T.StringType()) for column in relation.columns])
    return T.StructType(
        [
            T.StructField(change.OP, T.StringType()),
            T.StructField(change.LSN, T.LongType()),
            T.StructField(change.TS, T.TimestampType()),
            T.StructField(change.XID, T.LongType()),
            T.StructField(change.UNCHANGED, T.ArrayType(T.StringType())),
            T.StructField(change.DATA, text),
            T.StructField(change.OLD, text),
        ]
    )


def _unchanged(columns: Sequence[LakeColumn]) -> Column:
    """With the companions of what was not sent: they are not known either."""
    sent = F.col(change.UNCHANGED)
    companions = {column.text_of.name: column.name for column in columns if column.text_of is not None}
    if not companions:
        return sent
    both = F.create_map(
        *(part for name, text in companions.items() for part in (F.lit(name), F.array(F.lit(name), F.lit(text))))
    )
    return F.flatten(F.transform(sent, lambda name: F.coalesce(F.try_element_at(both, name), F.array(name))))


def _text(tuple_: Column, column: LakeColumn) -> Column:
    return tuple_.getField(column.name if column.text_of is None else column.text_of.name)


def _beginning(tuple_: Column, column: LakeColumn, longest: int) -> Column:
    return F.substring(_text(tuple_, column), 1, longest + 1)


def _named(tuple_: Column, columns: Sequence[LakeColumn]) -> Column:
    parts = (_beginning(tuple_, column, LONGEST_KEY_PART).alias(column.name) for column in columns)
    return F.when(tuple_.isNotNull(), F.struct(*parts))


def _key_json(key: Column, named: Sequence[LakeColumn]) -> Column:
    return (F.to_json(key) if named else F.lit("{}")).alias("key")


def _key_value(is_delete: Column, column: LakeColumn) -> Column:
    new, old = F.col(change.DATA), F.col(change.OLD)
    return typed(F.when(is_delete, _text(old, column)).otherwise(_text(new, column)), column.type)


def _texts(tuple_: Column, columns: Sequence[LakeColumn]) -> Column:
    return F.when(tuple_.isNotNull(), F.struct(*(_text(tuple_, column).alias(column.name) for column in columns)))


def _typed_struct(tuple_: Column, columns: Sequence[LakeColumn]) -> Column:
    """Of NULLs where there is no tuple: a struct that is never NULL itself lets Spark leave out unused fields."""
    return F.struct(*(value_of(_text(tuple_, column), column).alias(column.name) for column in columns))


def value_of(text: Column, column: LakeColumn) -> Column:
    """What a column of the table holds of a value that PostgreSQL writes so."""
    if column.text_of is None:
        return typed(text, column.type)
    return F.when(unfit(text, typed(text, column.text_of.type), column.text_of.type), text)


def _is_unfit(new: Column, row: Column, columns: Sequence[LakeColumn]) -> Column:
    return reduce(lambda left, right: left | right, (p for _, p in _problems(new, row, columns)), F.lit(False))


def _problems(new: Column, row: Column, columns: Sequence[LakeColumn]) -> list[tuple[LakeColumn, Column]]:
    """Per column that may have one: a value the type can't hold, or a key without a value."""
    problems = []
    for column in columns:
        value = row.getField(column.name)
        if column.is_key:
            problems.append((column, new.isNotNull() & value.isNull()))
        elif column.leaves_letters:
            problems.append((column, unfit(_text(new, column), value, column.type)))
    return problems
