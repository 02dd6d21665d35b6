"""The staged file with six columns and the row as JSON."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from icestream.log.documents import as_documents, old_name
from icestream.log.format import encode, relation_of, staged_table
from icestream.log.writer import format_of, staged_path
from icestream.model.change import StagingFormat
from icestream.model.table import Column, Relation
from icestream.sources.postgres.columnar import decode_rows
from icestream.sources.postgres.pgoutput import UNCHANGED
from support import pgoutput_messages as raw

OID = 16385


def relation(names: list[str], identity: str = "d") -> Relation:
    columns = (Column(name, 25, -1, i == 0 or identity == "f") for i, name in enumerate(names))
    return Relation(OID, "public", "t", identity, tuple(columns))


def written(shape: Relation, messages: list[bytes]) -> pa.Table:
    stamps = np.arange(1, len(messages) + 1, dtype=np.int64)
    staged = staged_table(decode_rows(shape, messages), shape, lsn=stamps, ts=stamps * 1_000_000, xid=stamps + 700)
    return pq.read_table(pa.BufferReader(encode(as_documents(staged, shape))))


def documents(shape: Relation, *messages: bytes) -> list[object]:
    return [json.loads(text) for text in written(shape, list(messages))["_data"].to_pylist()]


def test_the_six_columns_have_the_names_types_and_ids_of_the_seed() -> None:
    schema = written(relation(["id"]), [raw.insert(OID, ["1"])]).schema
    assert schema.names == ["_op", "_lsn", "_ts", "_xid", "_unchanged_cols", "_data"]
    kinds = [pa.string(), pa.int64(), pa.timestamp("us", tz="UTC"), pa.int64(), pa.string(), pa.string()]
    assert schema.types == kinds
    assert [int(field.metadata[b"PARQUET:field_id"]) for field in schema] == [1, 2, 3, 6, 4, 5]
    assert [field.name for field in schema if field.nullable] == ["_xid", "_unchanged_cols"]


def test_every_value_is_its_text_and_null_is_null() -> None:
    shape = relation(["id", "n", 'odd "name"', "none"])
    assert documents(shape, raw.insert(OID, ["1", "1.50", 'ä€𝄞 "\\\n\x01', None])) == [
        {"id": "1", "n": "1.50", 'odd "name"': 'ä€𝄞 "\\\n\x01', "none": None}
    ]


def test_values_that_were_not_sent_are_left_out_and_named() -> None:
    table = written(relation(["id", "a", "b"]), [raw.update(OID, ["1", UNCHANGED, UNCHANGED])])
    assert table["_unchanged_cols"].to_pylist() == ["a,b"]
    assert json.loads(table["_data"][0].as_py()) == {"id": "1"}


def test_a_delete_has_its_key_or_its_whole_old_row() -> None:
    assert documents(relation(["id", "a"]), raw.delete(OID, ["1", None])) == [{"id": "1"}]
    assert documents(relation(["id", "a"], "f"), raw.delete(OID, ["1", None], "O")) == [{"id": "1", "a": None}]


def test_a_truncate_has_nothing() -> None:
    assert documents(relation(["id"]), b"T") == [{}]


def test_an_update_of_the_key_has_the_old_one_under_a_name_that_no_column_has() -> None:
    plain, taken = relation(["id", "a"]), relation(["id", "_old"])
    assert documents(plain, raw.update(OID, ["2", "x"], ["1", None])) == [{"id": "2", "a": "x", "_old": {"id": "1"}}]
    assert old_name(taken) == "__old"
    assert documents(taken, raw.update(OID, ["2", "x"], ["1", None])) == [
        {"id": "2", "_old": "x", "__old": {"id": "1"}}
    ]


def test_the_relation_travels_with_the_file() -> None:
    shape = relation(["id", "a"])
    assert relation_of(written(shape, [raw.insert(OID, ["1", "x"])]).schema) == shape


def test_the_name_of_a_file_tells_its_format() -> None:
    for staging_format in StagingFormat:
        assert format_of(staged_path("p", "n.t.json", staging_format)) is staging_format
