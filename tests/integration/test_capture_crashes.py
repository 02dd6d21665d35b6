"""Capture is killed right after each of its durable steps, started again, and the log holds everything once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from icestream.model.position import Lsn
from icestream.model.table import TableState
from icestream.observe.steps import CRASH_AT
from support.capturing import CaptureBench, replay
from support.waiting import wait_for

_PROGRAM = Path(__file__).parents[1] / "support" / "capture_process.py"
_NEVER = "FFFFFFFF/0"


def run_process(bench: CaptureBench, *, crash_at: str | None, until: str) -> subprocess.Popen[str]:
    """Where the log should end is not known to a process that is going to be killed."""
    environ = {**os.environ, "PYTHONPATH": "", **({CRASH_AT: crash_at} if crash_at else {})}
    process = subprocess.Popen(
        [sys.executable, str(_PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps({**bench.environ(), "UNTIL": until}))
    process.stdin.close()
    process.stdin = None
    return process


def crash(bench: CaptureBench, step: str) -> None:
    process = run_process(bench, crash_at=step, until=_NEVER)
    try:
        _, log = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGKILL, log


def copied_keys(bench: CaptureBench) -> tuple[set[str], Lsn]:
    """What a worker copies at the offered snapshot, and its position."""

    def offer() -> tuple[str, Lsn] | None:
        row = bench.tables.get("public.items")
        if row is None or row.state is not TableState.COPYING or not row.snapshot_name or not row.snapshot_lsn:
            return None
        return row.snapshot_name, row.snapshot_lsn

    snapshot, position = wait_for(offer, what="a snapshot")
    with psycopg.connect(bench.conninfo) as conn:
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        conn.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
        return {row[0] for row in conn.execute("SELECT id::text FROM items")}, position


def fill(bench: CaptureBench, first: int, count: int) -> None:
    bench.execute(f"INSERT INTO items SELECT g, 'v' FROM generate_series({first}, {first + count - 1}) g")


@pytest.fixture
def items(bench: CaptureBench) -> CaptureBench:
    bench.execute("CREATE TABLE items (id int PRIMARY KEY, v text)", "CREATE TABLE others (id int PRIMARY KEY)")
    return bench


@pytest.mark.parametrize("step", ["slot created", "epoch begun", "snapshot exported"])
def test_a_first_start_that_was_killed_begins_again(items: CaptureBench, step: str) -> None:
    fill(items, 1, 10)
    crash(items, step)
    fill(items, 11, 10)
    with items.running() as running:
        copied, position = copied_keys(items)
        fill(items, 21, 10)
        items.catch_up(running)
    streamed = {key for (key,) in replay(items.changes("public.items"), ("id",), position)}
    assert not copied & streamed
    assert copied | streamed == {str(number) for number in range(1, 31)}


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("step", ["intent noted", "file uploaded", "offsets claimed", "position acknowledged"])
def test_a_flush_that_was_killed_is_in_the_log_once_or_is_sent_again(items: CaptureBench, step: str, nth: int) -> None:
    with items.running() as running:
        items.catch_up(running)
    fill(items, 1, 100)
    items.execute("INSERT INTO others VALUES (1)")
    process = run_process(items, crash_at=f"{step}:{nth}", until=_NEVER)
    for round_number in range(1, 200):
        if process.poll() is not None:
            break
        fill(items, round_number * 100 + 1, 100)
        wait_for(
            lambda: items.confirmed() and (process.poll() is not None or _is_past(items)), what="a flush or an end"
        )
    _, log = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, log
    with items.running() as running:
        items.catch_up(running)
    expected = [row[0] for row in items.rows("SELECT id::text FROM items ORDER BY items.id")]
    assert [change.data["id"] for change in items.changes("public.items") if change.data] == expected
    assert len(items.changes("public.others")) == 1


def _is_past(bench: CaptureBench) -> bool:
    """Whether the newest row is in the log."""
    newest = bench.rows("SELECT max(id)::text FROM items")[0][0]
    changes = bench.changes("public.items")
    return bool(changes) and changes[-1].data is not None and changes[-1].data["id"] == newest
