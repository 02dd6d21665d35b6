"""The watcher: what it repeats while changes are streamed, and the budget of the slot."""

from __future__ import annotations

import logging
from dataclasses import replace

import psycopg
import pytest

from icestream.capture.budget import SlotBudget
from icestream.capture.fitness import Fitness
from icestream.model.position import Lsn
from icestream.runtime.status import read_status
from icestream.sources.postgres.connection import connect
from icestream.sources.postgres.slot import Retained, Slot, retained
from support.capturing import CaptureBench
from support.waiting import wait_for

ITEMS = "CREATE TABLE items (id int PRIMARY KEY, v text)"


def live_pipeline(bench: CaptureBench) -> None:
    bench.execute(ITEMS)
    with bench.running() as running:
        wait_for(bench.tables.all, what="the tables")
        bench.go_live()
        bench.catch_up(running)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_wal_beyond_the_budget_is_told_once_and_when_it_is_over(
    bench: CaptureBench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    live_pipeline(bench)
    budget = SlotBudget(bench.slot, 4 * 1024**2)
    with connect(bench.conninfo) as conn:
        budget.look(conn)
        assert "slot keeps more wal than its budget" not in messages(caplog)
        bench.execute("CREATE TABLE other AS SELECT repeat(g::text, 100) FROM generate_series(1, 60000) g")
        budget.look(conn)
        budget.look(conn)
        assert messages(caplog).count("slot keeps more wal than its budget") == 1
        with bench.running() as running:
            bench.catch_up(running)
        bench.execute("CHECKPOINT")
        wait_for(lambda: _look_again(bench, budget) or "slot keeps to its budget again" in messages(caplog))


def _look_again(bench: CaptureBench, budget: SlotBudget) -> bool:
    """The server lets go of WAL when it decodes the running transactions of later WAL."""
    with bench.running() as running:
        bench.execute("CHECKPOINT")
        bench.catch_up(running)
    with connect(bench.conninfo) as conn:
        budget.look(conn)
    return False


def test_the_running_capture_warns_of_the_budget(bench: CaptureBench, caplog: pytest.LogCaptureFixture) -> None:
    live_pipeline(bench)
    with bench.running(options=replace(bench.options, slot_budget=1)):
        wait_for(lambda: "slot keeps more wal than its budget" in messages(caplog), what="a warning")


def test_what_holds_the_wal_is_named() -> None:
    slot = Slot("shop", "pgoutput", "db", True, 1, Lsn(900), Lsn(100), "reserved", None)
    kept = retained(slot, Lsn(1000))
    assert kept == Retained(900, 100) and "still open" in kept.held_by
    behind = retained(replace(slot, confirmed=Lsn(150)), Lsn(1000))
    assert behind and "not captured" in behind.held_by
    assert retained(replace(slot, restart=None), Lsn(1000)) is None


def test_status_shows_what_the_slot_keeps_and_why_it_is_too_much(bench: CaptureBench) -> None:
    live_pipeline(bench)
    logical = bench.settings.source.logical.model_copy(update={"slot_budget": 1})
    source = bench.settings.source.model_copy(update={"logical": logical})
    with psycopg.connect(bench.conninfo) as other:
        other.execute("INSERT INTO items VALUES (1, 'open')")
        status = read_status(bench.db, bench.settings.model_copy(update={"source": source}))
    assert status.slot is not None and status.slot.budget_bytes == 1
    assert status.slot.retained_bytes and status.slot.held_by
    assert status.watched_at is not None
    within = read_status(bench.db, bench.settings).slot
    assert within is not None and within.held_by is None


def test_what_the_preflight_would_say_is_told_while_it_runs(
    bench: CaptureBench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    live_pipeline(bench)
    with bench.running():
        wait_for(bench.walsender, what="the stream")
        for _ in range(2):  # the first of them is over when the second has begun
            looked = bench.sightings.last_look()
            wait_for(lambda looked=looked: bench.sightings.last_look() != looked, what="a look")
        bench.execute("ALTER TABLE items REPLICA IDENTITY NOTHING")
        wait_for(lambda: "source is not what it was" in messages(caplog), what="a warning")
        bench.execute("ALTER TABLE items REPLICA IDENTITY DEFAULT")
        wait_for(lambda: "source is as it was again" in messages(caplog), what="it to be over")
    assert messages(caplog).count("source is not what it was") == 1


def test_a_finding_of_the_first_look_is_known_from_the_start(
    bench: CaptureBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.execute("CREATE TABLE items (id int, v text)")
    fitness = Fitness(bench.settings, bench.tables)
    with connect(bench.conninfo) as conn:
        fitness.look(conn)
        fitness.look(conn)
    assert "source is not what it was" not in messages(caplog)


def test_a_source_that_cannot_be_asked_is_asked_again(bench: CaptureBench, caplog: pytest.LogCaptureFixture) -> None:
    live_pipeline(bench)
    with bench.running() as running:
        wait_for(bench.walsender, what="the stream")
        with psycopg.connect(bench.conninfo) as other:
            other.execute("LOCK TABLE pg_inherits IN ACCESS EXCLUSIVE MODE")
            wait_for(lambda: "source cannot be looked at" in messages(caplog), what="a look that fails")
        bench.execute("INSERT INTO items VALUES (1, 'a')")
        bench.catch_up(running)
        looked = bench.sightings.last_look()
        wait_for(lambda: bench.sightings.last_look() != looked, what="another look")
