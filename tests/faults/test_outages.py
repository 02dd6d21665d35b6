"""PostgreSQL, the network or the disk is away for a while: the processes stay, wait, and go on where they were."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from icestream.model.position import Lsn
from support.postgres import PostgresServer
from support.processes import write_settings
from support.proxy import Proxy
from support.shop import Shop
from support.waiting import wait_for
from support.working import working


@pytest.mark.parametrize("crash", [False, True], ids=["stopped", "crashed"])
def test_postgres_goes_away_and_comes_back_during_a_run(shop: Shop, postgres: PostgresServer, crash: bool) -> None:
    capture = shop.processes.capture()
    with working(shop):
        shop.wait_until_applied()
        shop.change()
        postgres.stop(crash=crash)
        capture.wait_for_output("capture was interrupted")
        postgres.start()
        shop.reconnect()
        shop.change()
        shop.wait_until_applied()
    capture.stop()
    shop.assert_mirrored()


def test_postgres_goes_away_during_the_first_copy(shop: Shop, postgres: PostgresServer) -> None:
    capture = shop.processes.capture()
    shop.wait_until_offered()
    postgres.restart(crash=True)
    shop.reconnect()
    shop.change()
    with working(shop):
        shop.wait_until_applied()
    capture.stop()
    shop.assert_mirrored()


def test_the_network_goes_away_and_comes_back(shop: Shop, proxy: Proxy, warehouse: Path) -> None:
    shop.go_live()
    write_settings(shop.processes.settings, shop.pipeline, warehouse, conninfo=proxy.conninfo(shop.pipeline.conninfo))
    capture = shop.processes.capture()
    capture.wait_for_output("streaming")
    shop.change()
    proxy.refuse()
    shop.change()
    capture.wait_for_output("capture was interrupted")
    proxy.accept_again()
    shop.bring_forward()
    capture.stop()
    shop.assert_mirrored()


def test_the_slot_does_not_grow_while_the_catalog_is_away(shop: Shop, warehouse: Path) -> None:
    shop.go_live()
    nowhere = {"type": "jdbc", "uri": f"jdbc:sqlite:{warehouse}/not/there/catalog.db", "warehouse": str(warehouse)}
    write_settings(shop.processes.settings, shop.pipeline, warehouse, catalog=nowhere)
    running = shop.processes.start("run", "--log-level", "info")
    running.wait_for_output("streaming")
    for _ in range(3):
        shop.change()
        written = shop.pipeline.written()
        wait_for(partial(_has_confirmed, shop, written), what="the changes to be acknowledged")
    running.wait_for_output("role ended, starting it again")
    running.stop()
    with shop.pipeline.capturing():
        shop.bring_forward()
    shop.assert_mirrored()


def test_capture_waits_for_space_when_the_disk_of_the_staged_files_is_full(shop: Shop, small_disk: Path) -> None:
    shop.go_live()
    capture = shop.processes.capture()
    capture.wait_for_output("streaming")
    ballast = small_disk / "ballast"
    _fill(ballast)
    shop.pipeline.execute("UPDATE customers SET name = 'not durable yet'")
    written = shop.pipeline.written()
    capture.wait_for_output("flush is waiting")
    assert "No space left on device" in capture.output
    flushed = shop.pipeline.index.flushed()
    assert flushed and flushed.position < written, "something was acknowledged that is not durable"
    ballast.unlink()
    shop.bring_forward()
    capture.stop()
    shop.assert_mirrored()


def test_nothing_is_lost_when_capture_is_stopped_while_the_disk_is_full(shop: Shop, small_disk: Path) -> None:
    shop.go_live()
    capture = shop.processes.capture()
    capture.wait_for_output("streaming")
    ballast = small_disk / "ballast"
    _fill(ballast)
    shop.change()
    capture.wait_for_output("flush is waiting")
    capture.stop()
    ballast.unlink()
    with shop.pipeline.capturing():
        shop.bring_forward()
    shop.assert_mirrored()


@pytest.fixture
def small_disk(shop: Shop) -> Iterator[Path]:
    """The staged files of the shop lie on a disk of one megabyte."""
    staged = Path(shop.pipeline.settings.sink.staging_root)
    staged.mkdir()
    mounted = _run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", staged)
    if mounted.returncode != 0:
        pytest.skip(f"this user may not mount a small disk: {mounted.stderr.strip()}")
    yield staged
    shop.processes.clear_away()
    wait_for(
        lambda: subprocess.run(["umount", staged], capture_output=True).returncode == 0, what="the disk to be free"
    )


def _has_confirmed(shop: Shop, written: Lsn) -> bool:
    slot = shop.pipeline.settings.source.logical.slot_name
    query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s"
    with psycopg.connect(shop.pipeline.conninfo) as connection:
        (position,) = connection.execute(query, [slot]).fetchone() or ("0/0",)
    return Lsn.parse(position) >= written


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True)


def _fill(file: Path) -> None:
    """Until not a byte is left."""
    with file.open("wb", buffering=0) as out:
        for size in (65536, 4096, 1):
            try:
                while out.write(b"x" * size):
                    pass
            except OSError:
                continue
