"""Both decoders on what a PostgreSQL server really sends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from icestream.log.format import RowBatch
from icestream.model.table import Relation
from icestream.sources.postgres import pgoutput
from icestream.sources.postgres.columnar import decode_rows
from icestream.sources.postgres.connection import connect, connect_replication
from support.postgres import PostgresServer
from support.row_reference import Expected, listed, profile, reference

START = (
    "START_REPLICATION SLOT recorded LOGICAL 0/0"
    " (proto_version '2', streaming 'on', messages 'true', publication_names 'everything')"
)
XLOG_HEADER = 25
LONG = "x" * 5000  # with storage EXTERNAL: out of line, not compressed


@dataclass
class Recording:
    """Everything a server sent: the parsed messages, and the raw row messages of each relation version."""

    messages: list[pgoutput.Message] = field(default_factory=list)
    rows: dict[tuple[Relation, bool], list[bytes]] = field(default_factory=dict)

    def of_type(self, kind: type[pgoutput.Message]) -> list[pgoutput.Message]:
        return [message for message in self.messages if isinstance(message, kind)]

    def decode(self, table: str, *, in_stream: bool = False) -> RowBatch:
        """The rows of the only version of a table, after checking that both decoders agree on them."""
        [(relation, messages)] = [
            (relation, messages)
            for (relation, streamed), messages in self.rows.items()
            if relation.name == table and streamed == in_stream
        ]
        batch = decode_rows(relation, messages, skip=XLOG_HEADER, in_stream=in_stream)
        assert_equal(batch, [reference(relation, body[XLOG_HEADER:], in_stream=in_stream) for body in messages])
        return batch


class Source:
    """A database with a publication of all tables and a slot that remembers what happens to them."""

    def __init__(self, dsn: str) -> None:
        self.conn = connect(dsn)
        self.execute = self.conn.execute
        self._dsn = make_conninfo(dsn, options="-c logical_decoding_work_mem=64kB")
        self.execute("CREATE PUBLICATION everything FOR ALL TABLES WITH (publish_via_partition_root)")
        self.execute("SELECT pg_create_logical_replication_slot('recorded', 'pgoutput')")

    def record(self) -> Recording:
        """What happened up to now."""
        self.mark_end()
        return self.read(connect_replication(self._dsn))

    def mark_end(self) -> None:
        self.execute("SELECT pg_logical_emit_message(true, 'end of recording', '')")

    def read(self, replication: psycopg.pq.PGconn) -> Recording:
        try:
            answer = replication.exec_(START.encode())
            assert answer.status == psycopg.pq.ExecStatus.COPY_BOTH, answer.get_error_message()
            return assemble(payloads(replication))
        finally:
            replication.finish()


@pytest.fixture
def source(database: str) -> Iterator[Source]:
    source = Source(database)
    yield source
    source.conn.close()


def payloads(replication: psycopg.pq.PGconn) -> Iterator[bytes]:
    while True:
        size, data = replication.get_copy_data(0)
        assert size > 0, replication.get_error_message()
        if bytes(data[:1]) == b"w":
            yield bytes(data)


def assemble(messages: Iterator[bytes]) -> Recording:
    recording = Recording()
    relations: dict[int, Relation] = {}
    in_stream = False
    for data in messages:
        message = pgoutput.parse(data[XLOG_HEADER:], in_stream=in_stream)
        recording.messages.append(message)
        match message:
            case pgoutput.LogicalMessage(prefix="end of recording"):
                break
            case pgoutput.StreamStart():
                in_stream = True
            case pgoutput.StreamStop():
                in_stream = False
            case pgoutput.RelationMessage(relation=relation):
                relations[relation.oid] = relation
            case pgoutput.Insert(oid) | pgoutput.Update(oid) | pgoutput.Delete(oid):
                recording.rows.setdefault((relations[oid], in_stream), []).append(data)
    return recording


def assert_equal(batch: RowBatch, expected: list[Expected]) -> None:
    assert batch.op.to_pylist() == [change.op for change in expected]
    assert batch.new.to_pylist() == [change.new for change in expected]
    assert listed(batch.old, len(batch)) == [change.old for change in expected]
    assert listed(batch.unchanged, len(batch)) == [change.unchanged for change in expected]
    assert batch.profile == profile(expected)


def test_values_arrive_as_the_text_that_postgres_prints(source: Source) -> None:
    source.execute(
        """CREATE TABLE t (id bigint PRIMARY KEY, b bool, n numeric(12, 2), d date, ts timestamptz, j jsonb,
                           raw bytea, f float8, "odd.näme" text, empty text, nothing int)"""
    )
    source.execute(
        """INSERT INTO t VALUES (1, true, 12.5, '2024-02-29', '2024-02-29 12:00:00.25+02', '{"a": 1}',
                                 '\\xdead', 0.1, 'zwölf 🎉', '', NULL)"""
    )
    [row] = source.record().decode("t").new.to_pylist()
    assert row == {
        "id": "1",
        "b": "t",
        "n": "12.50",
        "d": "2024-02-29",
        "ts": "2024-02-29 10:00:00.25+00",
        "j": '{"a": 1}',
        "raw": "\\xdead",
        "f": "0.1",
        "odd.näme": "zwölf 🎉",
        "empty": "",
        "nothing": None,
    }


def test_key_changes_deletes_and_unchanged_toast(source: Source) -> None:
    source.execute("CREATE TABLE t (a int, b text, body text, note text, PRIMARY KEY (b, a))")
    source.execute("ALTER TABLE t ALTER body SET STORAGE EXTERNAL")
    source.execute("INSERT INTO t VALUES (1, 'one', %s, 'n')", [LONG])
    source.execute("UPDATE t SET note = NULL")
    source.execute("UPDATE t SET a = 2")
    source.execute("DELETE FROM t")
    batch = source.record().decode("t")

    absent = {"body": None, "note": None}
    assert batch.op.to_pylist() == ["I", "U", "U", "D"]
    assert listed(batch.old, 4) == [None, None, {"a": "1", "b": "one", **absent}, {"a": "2", "b": "one", **absent}]
    assert listed(batch.unchanged, 4) == [None, ["body"], ["body"], None]
    assert (batch.profile.rekeyed, batch.profile.unchanged) == (1, 2)


def test_identity_full_leaves_nothing_unchanged(source: Source) -> None:
    source.execute("CREATE TABLE t (id int PRIMARY KEY, body text, note text)")
    source.execute("ALTER TABLE t ALTER body SET STORAGE EXTERNAL, REPLICA IDENTITY FULL")
    source.execute("INSERT INTO t VALUES (1, %s, 'a')", [LONG])
    source.execute("UPDATE t SET note = 'b'")
    source.execute("DELETE FROM t")
    batch = source.record().decode("t")

    assert batch.new.to_pylist()[1] == {"id": "1", "body": LONG, "note": "b"}
    assert listed(batch.old, 3)[2] == {"id": "1", "body": LONG, "note": "b"}
    assert batch.unchanged is None


def test_key_out_of_line_is_known_though_unchanged(source: Source) -> None:
    key = "k" * 2500
    source.execute("CREATE TABLE t (id text PRIMARY KEY, note text)")
    source.execute("ALTER TABLE t ALTER id SET STORAGE EXTERNAL")
    source.execute("INSERT INTO t VALUES (%s, 'a')", [key])
    source.execute("UPDATE t SET note = 'b'")
    batch = source.record().decode("t")

    assert batch.new.to_pylist()[1] == {"id": key, "note": "b"}
    assert batch.profile.rekeyed == 0
    assert batch.profile.unchanged == 0


def test_partition_whose_identity_differs_from_its_root(source: Source) -> None:
    source.execute("CREATE TABLE t (id int PRIMARY KEY, body text, note text) PARTITION BY RANGE (id)")
    source.execute("CREATE TABLE leaf PARTITION OF t FOR VALUES FROM (0) TO (10)")
    source.execute("ALTER TABLE leaf ALTER body SET STORAGE EXTERNAL")
    source.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    source.execute("INSERT INTO t VALUES (1, %s, 'a')", [LONG])
    source.execute("UPDATE t SET id = 2")
    batch = source.record().decode("t")

    # The message says "old row", but the partition logged only the key.
    assert listed(batch.old, 2)[1] == {"id": "1", "body": None, "note": None}
    assert listed(batch.unchanged, 2)[1] == ["body"]


def test_streamed_transaction_carries_the_xid_of_each_subtransaction(source: Source) -> None:
    source.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
    with source.conn.transaction():
        source.execute("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 2000) i")
        with pytest.raises(psycopg.errors.DivisionByZero), source.conn.transaction():
            source.execute("INSERT INTO t SELECT i, repeat('y', 100) FROM generate_series(2001, 4000) i")
            source.execute("SELECT 1 / 0")
        source.execute("DELETE FROM t WHERE id <= 10")
    recording = source.record()
    [start, *_] = recording.of_type(pgoutput.StreamStart)
    [abort] = recording.of_type(pgoutput.StreamAbort)
    [commit] = recording.of_type(pgoutput.StreamCommit)

    assert start == pgoutput.StreamStart(commit.xid, True)
    assert (abort.xid, abort.subxid != abort.xid) == (commit.xid, True)
    assert commit.commit_lsn < commit.end_lsn
    assert {message.xid for message in recording.of_type(pgoutput.Insert)} == {commit.xid, abort.subxid}
    batch = recording.decode("t", in_stream=True)
    sent = batch.profile.inserts  # the server stops sending a subtransaction once it knows of its abort
    assert 2000 < sent <= 4000
    assert batch.profile.deletes == 10
    assert batch.new.field("id").to_pylist()[:sent] == [str(number) for number in range(1, sent + 1)]


def test_messages_that_are_not_rows(source: Source) -> None:
    source.execute("CREATE TYPE mood AS ENUM ('happy')")
    source.execute("CREATE TABLE t (id int PRIMARY KEY, m mood)")
    source.execute("INSERT INTO t VALUES (1, 'happy')")
    source.execute("TRUNCATE t RESTART IDENTITY CASCADE")
    source.execute("SELECT pg_logical_emit_message(false, 'icestream', 'hällo')")
    (now, xid) = source.execute("SELECT extract(epoch FROM now())::float8, txid_current()").fetchone() or (0, 0)
    recording = source.record()

    [relation] = {message.relation for message in recording.of_type(pgoutput.RelationMessage)}
    assert [(column.name, column.is_key) for column in relation.columns] == [("id", True), ("m", False)]
    assert (relation.schema, relation.name, relation.identity) == ("public", "t", "d")
    [kind] = set(recording.of_type(pgoutput.Type))
    assert (kind.schema, kind.name, kind.oid) == ("public", "mood", relation.columns[1].type_oid)
    assert recording.of_type(pgoutput.Truncate) == [pgoutput.Truncate((relation.oid,), True, True)]
    assert recording.of_type(pgoutput.LogicalMessage)[0].content == "hällo".encode()
    begin, commit = recording.of_type(pgoutput.Begin)[0], recording.of_type(pgoutput.Commit)[0]
    assert begin.final_lsn == commit.commit_lsn < commit.end_lsn
    assert begin.commit_ts == commit.commit_ts
    assert abs(commit.commit_ts / 1_000_000 - now) < 3600
    assert begin.xid < xid


def test_table_without_columns(source: Source) -> None:
    source.execute("CREATE TABLE t ()")
    source.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    source.execute("INSERT INTO t DEFAULT VALUES")
    source.execute("DELETE FROM t")
    batch = source.record().decode("t")
    assert batch.op.to_pylist() == ["I", "D"]
    assert batch.new.to_pylist() == [{}, None]


def test_bytes_of_a_database_without_encoding_are_repaired(postgres: PostgresServer, database: str) -> None:
    name = f"{conninfo_to_dict(database)['dbname']}_without_encoding"
    dsn = postgres.dsn(name)
    with psycopg.connect(database, autocommit=True) as admin:
        template = "CREATE DATABASE {} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
        admin.execute(sql.SQL(template).format(sql.Identifier(name)))
    try:
        source = Source(dsn)
        source.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
        source.execute("INSERT INTO t VALUES (1, E'caf\\xe9'), (2, E'caf\\xc3\\xa9')")
        source.mark_end()
        # With UTF8 the server would check such text itself, and end the stream.
        unchecked = make_conninfo(dsn, replication="database", client_encoding="SQL_ASCII")
        rows = source.read(psycopg.pq.PGconn.connect(unchecked.encode())).decode("t").new.to_pylist()
        source.conn.close()
    finally:
        postgres.drop_database(dsn)
    assert [row["body"] for row in rows] == ["caf�", "café"]
