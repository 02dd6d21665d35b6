from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icestream.errors import StorageError
from icestream.log import format as staged
from icestream.log.format import encode, relation_of, staged_table
from icestream.model.table import Column, Relation
from icestream.sources.postgres.columnar import decode_rows
from icestream.sources.postgres.pgoutput import UNCHANGED
from support import pgoutput_messages as raw

OID = 16385
ODD_NAMES = ["a.b", 'quo"te', "`", " ", "Id", "id", "ключ", "_op", "_data.id", "element", "list"]


def relation(names: list[str], identity: str = "d") -> Relation:
    return Relation(OID, "public", "t", identity, tuple(Column(name, 25, -1, i == 0) for i, name in enumerate(names)))


def staged_rows(shape: Relation, messages: list[bytes]) -> pa.Table:
    stamps = np.arange(1, len(messages) + 1, dtype=np.int64)
    return staged_table(decode_rows(shape, messages), shape, lsn=stamps, ts=stamps * 1_000_000, xid=stamps + 700)


def read(data: pa.Buffer) -> pa.Table:
    return pq.read_table(pa.BufferReader(data))


def test_staged_schema() -> None:
    shape = relation(["id", "body"])
    row = pa.struct({"id": pa.string(), "body": pa.string()})
    table = read(encode(staged_rows(shape, [raw.insert(OID, ["1", "a"])])))
    assert table.schema.names == ["_op", "_lsn", "_ts", "_xid", "_unchanged_cols", "_data", "_old"]
    assert table.schema.types == [
        pa.string(),
        pa.int64(),
        pa.timestamp("us", tz="UTC"),
        pa.int64(),
        pa.list_(pa.string()),
        row,
        row,
    ]


def test_rows_survive_the_file() -> None:
    shape = relation(["id", "body"])
    messages = [
        raw.insert(OID, ["1", ""]),
        raw.update(OID, ["2", UNCHANGED], ["1", None]),
        raw.delete(OID, ["2", None]),
        b"T",
    ]
    table = staged_rows(shape, messages)
    again = read(encode(table))
    assert again.to_pylist() == table.to_pylist()
    assert again["_op"].to_pylist() == ["I", "U", "D", "T"]
    assert again["_lsn"].to_pylist() == [1, 2, 3, 4]
    assert again["_xid"].to_pylist() == [701, 702, 703, 704]
    assert again["_ts"].cast(pa.int64()).to_pylist() == [1_000_000, 2_000_000, 3_000_000, 4_000_000]
    assert again["_unchanged_cols"].to_pylist() == [None, ["body"], None, None]
    assert again["_data"].to_pylist() == [{"id": "1", "body": ""}, {"id": "2", "body": None}, None, None]
    assert again["_old"].to_pylist() == [None, {"id": "1", "body": None}, {"id": "2", "body": None}, None]


def test_old_rows_that_no_change_has_are_null() -> None:
    table = read(encode(staged_rows(relation(["id"]), [raw.insert(OID, ["1"])])))
    assert table["_old"].to_pylist() == [None]


def test_odd_column_names_survive_the_file() -> None:
    values = [f"value of {name}" for name in ODD_NAMES]
    table = read(encode(staged_rows(relation(ODD_NAMES), [raw.insert(OID, values)])))
    assert table["_data"].to_pylist() == [dict(zip(ODD_NAMES, values, strict=True))]


def test_relation_without_columns_keeps_the_difference_between_empty_and_absent_rows() -> None:
    shape = relation([], "f")
    table = read(encode(staged_rows(shape, [raw.insert(OID, []), raw.delete(OID, [], "O"), b"T"])))
    assert table["_data"].is_valid().to_pylist() == [True, False, False]
    assert table["_old"].is_valid().to_pylist() == [False, True, False]
    assert relation_of(table.schema) == shape


def test_relation_is_read_from_the_footer_alone() -> None:
    shape = relation(ODD_NAMES, "f")
    data = encode(staged_rows(shape, []))
    assert relation_of(pq.read_metadata(pa.BufferReader(data))) == shape
    assert relation_of(pq.read_schema(pa.BufferReader(data))) == shape


def test_foreign_parquet_file_is_refused() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1]}), sink)
    with pytest.raises(StorageError, match="not a staged file"):
        relation_of(pq.read_metadata(pa.BufferReader(sink.getvalue())))


def test_row_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged, "ROW_GROUP_ROWS", 2)
    data = encode(staged_rows(relation(["id"]), [raw.insert(OID, [str(i)]) for i in range(5)]))
    metadata = pq.read_metadata(pa.BufferReader(data))
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [2, 2, 1]
    assert read(data)["_data"].to_pylist() == [{"id": str(i)} for i in range(5)]


def test_position_has_bounds_in_the_footer() -> None:
    data = encode(staged_rows(relation(["id"]), [raw.insert(OID, ["1"]), raw.insert(OID, ["2"])]))
    columns = pq.read_metadata(pa.BufferReader(data)).row_group(0)
    bounds = next(columns.column(i) for i in range(columns.num_columns) if columns.column(i).path_in_schema == "_lsn")
    assert (bounds.statistics.min, bounds.statistics.max) == (1, 2)
