"""One process per worker id, by the database's clock."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from icestream.model.ids import new_id
from icestream.state.database import Database
from icestream.state.leases import Held, Lease, Leases
from support.state import PIPELINE

FIRST, SECOND = new_id(), new_id()


@pytest.fixture
def leases(state: Database) -> Leases:
    return Leases(state, PIPELINE, "default")


def end_lease(state: Database, worker_id: str) -> None:
    """As if the time to live had passed."""
    state.execute(
        "UPDATE {schema}.consumer SET expires_at = now() - interval '1 second' WHERE worker_id = %(id)s",
        {"id": worker_id},
    )


def test_a_free_lease_is_taken(leases: Leases) -> None:
    assert isinstance(leases.acquire("w1", FIRST, 30), Lease)
    (worker,) = leases.workers()
    assert (worker.worker_id, worker.instance, worker.pid, worker.alive) == ("w1", FIRST, os.getpid(), True)
    assert (worker.expires_at - worker.started_at).total_seconds() == pytest.approx(30, abs=5)


def test_a_held_lease_is_refused_and_says_by_whom(leases: Leases) -> None:
    mine = leases.acquire("w1", FIRST, 30)
    held = leases.acquire("w1", SECOND, 30)
    assert isinstance(mine, Lease)
    assert isinstance(held, Held)
    assert (held.instance, held.expires_at, held.pid) == (FIRST, mine.expires_at, os.getpid())


def test_the_holder_may_acquire_again(leases: Leases) -> None:
    leases.acquire("w1", FIRST, 30)
    assert isinstance(leases.acquire("w1", FIRST, 60), Lease)


def test_only_the_holder_can_renew(leases: Leases) -> None:
    leases.acquire("w1", FIRST, 30)
    assert leases.renew("w1", FIRST, 30)
    assert not leases.renew("w1", SECOND, 30)
    assert not leases.renew("w2", FIRST, 30)


def test_a_lease_that_has_ended_cannot_be_renewed_but_acquired(state: Database, leases: Leases) -> None:
    leases.acquire("w1", FIRST, 30)
    end_lease(state, "w1")
    assert not leases.renew("w1", FIRST, 30)
    assert leases.active() == []
    assert isinstance(leases.acquire("w1", SECOND, 30), Lease)
    assert not leases.renew("w1", FIRST, 30)


def test_a_zero_time_to_live_ends_at_once(leases: Leases) -> None:
    leases.acquire("w1", FIRST, 0)
    assert leases.active() == []


def test_a_released_lease_is_free(leases: Leases) -> None:
    leases.acquire("w1", FIRST, 30)
    leases.release("w1", SECOND)
    assert leases.active() == ["w1"]
    leases.release("w1", FIRST)
    assert leases.workers() == []
    assert isinstance(leases.acquire("w1", SECOND, 30), Lease)


def test_active_workers_are_sorted_by_code_point(leases: Leases) -> None:
    for worker_id in ("b", "a", "B", "ä", "w10", "w2"):
        leases.acquire(worker_id, new_id(), 30)
    assert leases.active() == ["B", "a", "b", "w10", "w2", "ä"]


def test_reading_removes_nothing_and_acquiring_cleans_up_its_group(state: Database, leases: Leases) -> None:
    other = Leases(state, PIPELINE, "other")
    for each in (leases, other):
        each.acquire("dead", new_id(), 30)
    end_lease(state, "dead")
    assert (leases.active(), len(leases.workers())) == ([], 1)
    leases.acquire("w1", FIRST, 30)
    assert [worker.worker_id for worker in leases.workers()] == ["w1"]
    assert len(other.workers()) == 1


def test_groups_do_not_share_worker_ids(state: Database, leases: Leases) -> None:
    leases.acquire("w1", FIRST, 30)
    assert isinstance(Leases(state, PIPELINE, "other").acquire("w1", SECOND, 30), Lease)


def test_of_many_instances_that_start_at_once_one_gets_the_lease(state: Database, leases: Leases) -> None:
    for round_ in range(5):
        leases.acquire(f"w{round_}", new_id(), 30)
        end_lease(state, f"w{round_}")
        with ThreadPoolExecutor(6) as threads:
            got = list(threads.map(lambda _: leases.acquire("w", new_id(), 30), range(6)))
        (winner,) = [lease for lease in got if isinstance(lease, Lease)]
        assert {held.instance for held in got if isinstance(held, Held)} == {winner.instance}
        leases.release("w", winner.instance)
