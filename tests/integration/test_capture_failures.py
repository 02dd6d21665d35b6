"""Capture when something breaks: it goes on by itself where that can help, and says why where it cannot."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from icestream.capture.options import FlushLimits
from icestream.errors import ClaimRefused, SourceError, SourceUnavailable, StorageError
from icestream.log.store import LocalStore
from icestream.sources.postgres.connection import connect, connect_replication
from support.capturing import CaptureBench
from support.postgres import PostgresServer
from support.waiting import wait_for

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, v text)"


def fill(bench: CaptureBench, first: int, last: int) -> None:
    bench.execute(f"INSERT INTO items SELECT g, repeat('x', 200) FROM generate_series({first}, {last}) g")


def captured_ids(bench: CaptureBench) -> list[int]:
    return [int(change.data["id"] or 0) for change in bench.changes("public.items") if change.data]


class StubbornStore(LocalStore):
    """Refuses as a full disk does, until it is told otherwise."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.full = False
        self.refused = 0

    def put(self, path: str, data: object) -> None:
        if self.full:
            self.refused += 1
            raise StorageError("no space") from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().put(path, data)  # type: ignore[arg-type]


class HeldStore(LocalStore):
    """Keeps every upload waiting until it is released."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.waiting = threading.Event()
        self.released = threading.Event()

    def put(self, path: str, data: object) -> None:
        self.waiting.set()
        assert self.released.wait(60)
        super().put(path, data)  # type: ignore[arg-type]


def test_it_goes_on_after_its_walsender_was_terminated(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    with bench.running() as running:
        bench.catch_up(running)
        for round_number in range(3):
            fill(bench, round_number * 1000, round_number * 1000 + 999)
            bench.execute(
                f"SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{bench.slot}'"
            )
        bench.catch_up(running)
    assert captured_ids(bench) == list(range(3000))


@pytest.mark.parametrize("crash", [False, True], ids=["restart", "crash"])
def test_it_goes_on_after_the_server_was_restarted(bench: CaptureBench, postgres: PostgresServer, crash: bool) -> None:
    bench.execute(ITEMS)
    with bench.running() as running:
        bench.catch_up(running)
        fill(bench, 1, 1000)
        bench.source.close()
        postgres.restart(crash=crash)
        bench.reconnect()
        fill(bench, 1001, 2000)
        bench.catch_up(running)
    assert captured_ids(bench) == list(range(1, 2001))


def test_it_waits_for_a_server_that_is_not_there_yet(bench: CaptureBench, postgres: PostgresServer) -> None:
    bench.execute(ITEMS)
    bench.source.close()
    postgres.stop()
    with bench.running() as running:
        wait_for(lambda: running.is_alive, what="the capture to try")
        postgres.start()
        bench.reconnect()
        bench.catch_up(running)
        fill(bench, 1, 10)
        bench.catch_up(running)
    assert captured_ids(bench) == list(range(1, 11))


def test_a_second_capture_waits_for_the_slot_and_then_goes_on(
    bench: CaptureBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.execute(ITEMS)
    with bench.running() as first:
        bench.catch_up(first)
        with bench.running() as second:
            wait_for(lambda: "is read by another process" in caplog.text, what="the second to be refused")
            fill(bench, 1, 100)
            bench.catch_up(first)
            first.stop()
            fill(bench, 101, 200)
            bench.catch_up(second)
    assert captured_ids(bench) == list(range(1, 201))


def test_a_claim_that_another_capture_has_overtaken_ends_it(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    with bench.running() as running:
        bench.catch_up(running)
        fill(bench, 1, 10)
        wait_for(lambda: captured_ids(bench), what="the first changes")
        bench.db.execute("UPDATE {schema}.flushed_lsn SET lsn = lsn + 1000000000")
        fill(bench, 11, 20)
        assert isinstance(running.failure(), ClaimRefused)
    assert bench.confirmed() <= bench.wal_end()


def test_a_full_disk_is_waited_for_and_nothing_is_lost(
    bench: CaptureBench, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench.execute(ITEMS)
    store = StubbornStore(bench.staging)
    with bench.running(store=store) as running:
        bench.catch_up(running)
        store.full = True
        fill(bench, 1, 20000)
        wait_for(lambda: store.refused > 3, what="the store to refuse several times")
        assert bench.confirmed() <= bench.flushed(), "nothing may be acknowledged that is not durable"
        assert captured_ids(bench) == []
        store.full = False
        bench.catch_up(running)
    assert captured_ids(bench) == list(range(1, 20001))
    warnings = [
        record for record in caplog.records if record.levelno >= logging.WARNING and "waiting" in record.getMessage()
    ]
    assert len(warnings) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small tmpfs")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a tmpfs is not allowed here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_of_the_system_is_waited_for(
    bench: CaptureBench, small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench.execute("CREATE TABLE items (id int PRIMARY KEY, v text)")
    bench.staging = small_disk
    ballast = small_disk / "ballast"
    with bench.running() as running:
        bench.catch_up(running)
        ballast.write_bytes(bytes(250_000))
        bench.execute("INSERT INTO items SELECT g, md5(g::text) FROM generate_series(1, 2000) g")
        wait_for(lambda: "No space left" in caplog.text, what="the disk to be full")
        assert bench.changes("public.items") == []
        ballast.unlink()
        bench.catch_up(running)
    assert captured_ids(bench) == list(range(1, 2001))
    assert not list(small_disk.rglob(".*")), "no half-written file stays behind"


def test_feedback_is_sent_on_time_while_a_flush_hangs(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    store = HeldStore(bench.staging)
    options = replace(
        bench.options, source=make_conninfo(bench.conninfo, options="-c wal_sender_timeout=2s"), standby_interval_s=10
    )
    with bench.running(store=store, options=options) as running:
        wait_for(bench.last_reply, what="the stream to begin")
        before = bench.walsender()
        fill(bench, 1, 30000)
        wait_for(store.waiting.is_set, what="the upload to hang")
        replies = bench.last_reply()
        wait_for(lambda: bench.last_reply() > replies + 4, what="feedback of four seconds")
        assert bench.walsender() == before, "the server has given up on us"
        store.released.set()
        wait_for(lambda: len(captured_ids(bench)) == 30000, what="the changes")
        running.check()
    assert captured_ids(bench) == list(range(1, 30001))


def test_a_hanging_flush_stops_the_reading_not_the_server(bench: CaptureBench) -> None:
    """What is read beyond the limits stays in the server: memory is bounded."""
    bench.execute(ITEMS)
    store = HeldStore(bench.staging)
    options = replace(bench.options, flush=FlushLimits(interval_s=0.1, rows=1000, size=200_000))
    with bench.running(store=store, options=options) as running:
        bench.catch_up(running)
        for first in range(0, 60000, 500):
            fill(bench, first, first + 499)
        wait_for(store.waiting.is_set, what="the upload to hang")
        written = bench.wal_end()
        wait_for(lambda: bench.sent_is_still(), what="the server to be held back")
        assert bench.sent() < written
        store.released.set()
        bench.catch_up(running)
    assert captured_ids(bench) == list(range(60000))


def test_it_stops_while_a_flush_fails(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    store = StubbornStore(bench.staging)
    with bench.running(store=store) as running:
        bench.catch_up(running)
        store.full = True
        fill(bench, 1, 10)
        wait_for(lambda: store.refused, what="the store to refuse")
        running.stop()
    with bench.running() as running:
        bench.catch_up(running)
    assert captured_ids(bench) == list(range(1, 11))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"password": "wrong"}, "password authentication failed"),
        ({"dbname": "nowhere"}, "does not exist"),
        ({"user": "nobody_here"}, "authentication failed"),
        ({"sslmode": "require"}, "SSL"),
    ],
    ids=["password", "database", "user", "tls"],
)
def test_a_refused_connection_is_not_tried_again(database: str, change: dict[str, str], words: str) -> None:
    for connecting in (connect, connect_replication):
        with pytest.raises(SourceError, match=words) as caught:
            connecting(make_conninfo(database, **change))
        assert not isinstance(caught.value, SourceUnavailable)
        assert caught.value.hint


def test_a_server_that_is_down_is_tried_again(database: str) -> None:
    for connecting in (connect, connect_replication):
        with pytest.raises(SourceUnavailable, match="refused"):
            connecting(make_conninfo(database, port="1"))


def test_a_role_without_replication_is_told_what_it_lacks(bench: CaptureBench) -> None:
    bench.execute("CREATE ROLE plain_reader LOGIN PASSWORD 'p'")
    try:
        with pytest.raises(SourceError) as caught:
            connect_replication(make_conninfo(bench.conninfo, user="plain_reader", password="p"))
        assert "REPLICATION" in (caught.value.hint or "")
    finally:
        bench.execute("DROP ROLE plain_reader")


def test_a_conninfo_that_cannot_be_read_does_not_show_its_password() -> None:
    with pytest.raises(SourceError) as caught:
        connect("host=h password=s3cr3t unknown_word=1")
    assert "s3cr3t" not in f"{caught.value} {caught.value.hint} {caught.value.__cause__}"
