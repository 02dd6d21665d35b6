"""Transactions that the server streams before they commit, and transactions that are too large for memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from icestream.capture.options import CaptureOptions
from icestream.state.log_entries import LogEntries
from support.capturing import CaptureBench, replay
from support.interleaving import CREATE, TABLES, interleave

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, v text)"


@pytest.fixture
def streaming(bench: CaptureBench) -> CaptureOptions:
    """Everything above 64 kB is streamed."""
    return replace(bench.options, source=make_conninfo(bench.conninfo, options="-c logical_decoding_work_mem=64kB"))


def streamed_count(bench: CaptureBench) -> int:
    rows = bench.rows(f"SELECT stream_txns FROM pg_stat_replication_slots WHERE slot_name = '{bench.slot}'")
    return int(rows[0][0]) if rows else 0


@pytest.mark.parametrize("transaction_bytes", [2**23, 100_000], ids=["in memory", "on disk"])
@pytest.mark.parametrize("seed", range(3))
def test_interleaved_and_partly_aborted_transactions_equal_the_source(
    bench: CaptureBench, streaming: CaptureOptions, seed: int, transaction_bytes: int
) -> None:
    streaming = replace(streaming, transaction_bytes=transaction_bytes)
    bench.execute(*CREATE)
    with bench.running(options=streaming) as running:
        bench.catch_up(running)
        interleave(bench.conninfo, sessions=4, steps=150, seed=seed)
        bench.catch_up(running)
    assert streamed_count(bench) > 0, "the server has streamed nothing: the test tests nothing"
    for table in TABLES:
        expected = {(row[0],): row for row in bench.rows(f"SELECT id::text, v, pad FROM {table}")}
        found = replay(bench.changes(f"public.{table}"), ("id",))
        assert {key: tuple(row.values()) for key, row in found.items()} == expected


def test_a_rollback_to_a_savepoint_removes_only_the_rows_after_it(
    bench: CaptureBench, streaming: CaptureOptions
) -> None:
    bench.execute(ITEMS)
    with bench.running(options=streaming) as running:
        bench.catch_up(running)
        bench.go_live()
        with psycopg.connect(bench.conninfo) as conn:
            fill = "INSERT INTO items SELECT g, repeat('x', 500) FROM generate_series(%s::int, %s) g"
            conn.execute(fill, [1, 400])
            conn.execute("SAVEPOINT a")
            conn.execute(fill, [401, 800])
            conn.execute("SAVEPOINT b")
            conn.execute(fill, [801, 1200])
            conn.execute("RELEASE SAVEPOINT b")
            conn.execute("ROLLBACK TO SAVEPOINT a")
            conn.execute("TRUNCATE items")
            conn.execute("ROLLBACK TO SAVEPOINT a")
            conn.execute(fill, [1201, 1600])
        bench.catch_up(running)
    ids = [int(change.data["id"] or 0) for change in bench.changes("public.items") if change.data]
    assert ids == [*range(1, 401), *range(1201, 1601)]
    assert streamed_count(bench) > 0


def test_a_streamed_transaction_that_changes_a_relation_tells_it_to_all_that_follow(
    bench: CaptureBench, streaming: CaptureOptions
) -> None:
    bench.execute(ITEMS)
    with bench.running(options=streaming) as running:
        bench.catch_up(running)
        bench.go_live()
        fill = "INSERT INTO items SELECT g, repeat('x', 500) FROM generate_series({}, {}) g;"
        bench.execute(f"BEGIN; {fill.format(1, 400)} ALTER TABLE items ADD w int; {fill.format(401, 800)} COMMIT")
        bench.execute("INSERT INTO items VALUES (801, 'plain', 1)")
        bench.execute(
            f"BEGIN; {fill.format(1001, 1400)} ALTER TABLE items ADD lost int; {fill.format(1401, 1800)} ROLLBACK"
        )
        bench.execute("INSERT INTO items VALUES (802, 'plain', 2)")
        bench.catch_up(running)
    shapes = Counter(tuple(change.data or ()) for change in bench.changes("public.items"))
    assert shapes == {("id", "v"): 400, ("id", "v", "w"): 402}


def test_a_relation_changed_in_a_subtransaction_that_is_aborted_is_as_it_was(
    bench: CaptureBench, streaming: CaptureOptions
) -> None:
    bench.execute(ITEMS)
    fill = "INSERT INTO items SELECT g, repeat('x', 500) FROM generate_series({}, {}) g;"
    with bench.running(options=streaming) as running:
        bench.catch_up(running)
        bench.go_live()
        bench.execute(
            f"BEGIN; {fill.format(1, 400)} SAVEPOINT s; ALTER TABLE items ADD lost int; {fill.format(401, 800)}"
            f" ROLLBACK TO SAVEPOINT s; {fill.format(801, 1200)} COMMIT"
        )
        bench.execute("INSERT INTO items VALUES (1201, 'plain')")
        bench.catch_up(running)
    changes = bench.changes("public.items")
    assert {tuple(change.data or ()) for change in changes} == {("id", "v")}
    assert [int(change.data["id"] or 0) for change in changes if change.data] == [*range(1, 401), *range(801, 1202)]


def test_a_large_transaction_is_one_claim_of_many_files(bench: CaptureBench, streaming: CaptureOptions) -> None:
    bench.execute(ITEMS)
    with bench.running(options=streaming) as running:
        bench.catch_up(running)
        bench.execute("INSERT INTO items SELECT g, repeat('x', 700) FROM generate_series(1, 30000) g")
        bench.catch_up(running)
    entries = LogEntries(bench.db, bench.slot).after("public.items", 0, max_rows=1, max_bytes=1)
    assert len(entries) > 1
    assert len({entry.claim_id for entry in entries}) == 1
    assert sum(entry.record_count for entry in entries) == 30000
    assert len({change.lsn for change in bench.changes("public.items")}) == 1


@pytest.mark.parametrize("work_mem", ["64kB", "1GB"], ids=["streamed", "sent at its commit"])
def test_memory_does_not_grow_with_the_size_of_a_transaction(bench: CaptureBench, work_mem: str) -> None:
    bench.execute(ITEMS)
    with bench.running() as running:
        bench.catch_up(running)
    bench.execute("INSERT INTO items SELECT g, repeat(md5(g::text), 40) FROM generate_series(1, 240000) g")  # 300 MB
    source = make_conninfo(bench.conninfo, options=f"-c logical_decoding_work_mem={work_mem}")
    answer = subprocess.run(
        [sys.executable, str(Path(__file__).parents[1] / "support" / "capture_process.py")],
        input=json.dumps({**bench.environ(), "POSTGRES_URL": source, "UNTIL": str(bench.wal_end())}),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    grown_mb = json.loads(answer.stdout)["grown_mb"]
    assert bench.db.fetch("SELECT sum(record_count)::int AS n FROM {schema}.log_index") == [{"n": 240000}]
    assert grown_mb < 200, f"capture grew by {grown_mb} MB for a transaction of 300 MB"
