"""The claim: offsets, index rows and flushed position in one transaction, and a receipt for it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from icestream.errors import ClaimRefused, StateUnavailable
from icestream.model.ids import new_epoch, new_id
from icestream.model.position import Lsn
from icestream.model.receipt import Receipt
from icestream.state.database import Database
from icestream.state.identity import Identity
from icestream.state.log_entries import LogEntries, LogEntry
from icestream.state.log_index import LogIndex
from icestream.state.retention import Retention
from support.postgres import PostgresServer
from support.proxy import COMMIT, Proxy
from support.state import PIPELINE, SCHEMA, LogDriver, staged
from support.waiting import wait_for


def entries(db: Database, table: str = "public.orders") -> list[LogEntry]:
    return LogEntries(db, PIPELINE).after(table, -1, max_rows=10**9, max_bytes=10**12)


def offsets(db: Database, table: str = "public.orders") -> list[tuple[int, int]]:
    return [(entry.start_offset, entry.end_offset) for entry in entries(db, table)]


def intents(db: Database) -> int:
    row = db.fetch_one("SELECT count(*) AS n FROM {schema}.staged_intent")
    assert row is not None
    return int(row["n"])


def test_offsets_follow_each_other_per_table_in_the_order_of_the_files(state: Database, log: LogDriver) -> None:
    first, other, second = staged(records=3), staged("public.items", 7), staged(records=2)
    log.claim(first, other, second)
    third = staged(records=5)
    log.claim(third)

    found = entries(state)
    assert [(entry.start_offset, entry.end_offset, entry.path) for entry in found] == [
        (0, 3, first.path),
        (3, 5, second.path),
        (5, 10, third.path),
    ]
    assert offsets(state, "public.items") == [(0, 7)]


def test_an_entry_carries_what_the_file_said(state: Database, log: LogDriver) -> None:
    file = staged(records=4, size=77)
    receipt = log.claim(file)
    (entry,) = entries(state)
    assert (entry.record_count, entry.byte_size, entry.position) == (4, 77, Lsn(1100))
    assert (entry.epoch, entry.claim_id, entry.profile) == (log.epoch, receipt.claim_id, file.profile)
    assert (entry.relation_version, entry.first_commit_at) == (file.relation.version, 1_700_000_000.25)


def test_a_claim_uses_up_its_intents_and_moves_the_position(state: Database, log: LogDriver) -> None:
    receipt = log.claim(staged(), staged())
    flushed = log.index.flushed()
    assert flushed is not None
    assert (flushed.epoch, flushed.position, flushed.claim_id) == (log.epoch, Lsn(1100), receipt.claim_id)
    assert receipt.position == Lsn(1100)
    assert intents(state) == 0


def test_nothing_is_flushed_before_the_first_epoch(state: Database) -> None:
    assert LogIndex(state, PIPELINE).flushed() is None
    with pytest.raises(ClaimRefused, match="found nothing"):
        LogIndex(state, PIPELINE).advance(epoch=new_epoch(), expected=Lsn(0), position=Lsn(1))


def test_the_position_cannot_go_back(log: LogDriver) -> None:
    with pytest.raises(ClaimRefused, match="cannot go back from 0/3E8 to 0/3E7"):
        log.index.advance(epoch=log.epoch, expected=Lsn(1000), position=Lsn(999))


def test_the_position_can_stay(log: LogDriver) -> None:
    assert log.index.advance(epoch=log.epoch, expected=Lsn(1000), position=Lsn(1000)).position == Lsn(1000)


def test_a_claim_on_an_old_position_is_refused_and_leaves_nothing(state: Database, log: LogDriver) -> None:
    log.claim(staged())
    late = staged()
    log.index.intend([late.path])
    with pytest.raises(ClaimRefused, match=r"expected 0/3E8 .* found 0/44C"):
        log.index.claim([late], epoch=log.epoch, expected=Lsn(1000), position=Lsn(2000))
    assert offsets(state) == [(0, 10)]
    assert intents(state) == 1


def test_a_claim_of_another_epoch_is_refused(log: LogDriver) -> None:
    old = log.epoch
    log.begin_epoch(Lsn(1000))
    with pytest.raises(ClaimRefused, match="another capture has moved the log"):
        log.index.advance(epoch=old, expected=Lsn(1000), position=Lsn(1100))


def test_a_file_that_retention_gave_up_cannot_be_claimed(state: Database, log: LogDriver) -> None:
    kept, lost = staged(), staged()
    log.index.intend([kept.path, lost.path])
    state.execute(
        "UPDATE {schema}.staged_intent SET created_at = now() - interval '1 day' WHERE path = %(p)s", {"p": lost.path}
    )
    assert Retention(state, PIPELINE).give_up_intents(grace_s=3600) == 1

    with pytest.raises(ClaimRefused, match="1 of 2 staged files"):
        log.index.claim([kept, lost], epoch=log.epoch, expected=log.position, position=Lsn(1100))
    flushed = log.index.flushed()
    assert flushed is not None
    assert flushed.position == Lsn(1000)
    assert offsets(state) == []


def test_a_file_that_was_never_announced_cannot_be_claimed(log: LogDriver) -> None:
    with pytest.raises(ClaimRefused, match="1 of 1 staged files"):
        log.index.claim([staged()], epoch=log.epoch, expected=log.position, position=Lsn(1100))


def test_repeating_a_committed_claim_gives_its_receipt_again(state: Database, log: LogDriver) -> None:
    file, claim_id = staged(), new_id()
    receipt = log.claim(file, claim_id=claim_id)
    again = log.index.claim([file], epoch=log.epoch, expected=Lsn(1000), position=Lsn(1100), claim_id=claim_id)
    assert again == receipt
    assert offsets(state) == [(0, 10)]


def test_announcing_twice_is_one_intent(state: Database, log: LogDriver) -> None:
    log.index.intend(["a", "b"])
    log.index.intend(["b", "c"])
    assert intents(state) == 3


def test_pipelines_do_not_see_each_other(state: Database, log: LogDriver) -> None:
    other = LogDriver(state, "other")
    log.claim(staged(records=3))
    other.claim(staged(records=8))
    assert offsets(state) == [(0, 3)]
    assert LogEntries(state, "other").extent("public.orders").next_offset == 8


def test_of_racing_claims_one_wins_each_round_and_the_log_has_no_hole_and_no_double(
    state: Database, log: LogDriver
) -> None:
    rounds, captures = 12, 4
    barrier = threading.Barrier(captures)

    def capture(number: int) -> list[str]:
        index, won = LogIndex(state, PIPELINE), []
        for turn in range(rounds):
            file = staged(records=number + 1)
            index.intend([file.path])
            barrier.wait()
            try:
                index.claim(
                    [file],
                    epoch=log.epoch,
                    expected=Lsn(1000 + turn * 10),
                    position=Lsn(1000 + (turn + 1) * 10),
                )
                won.append(file.path)
            except ClaimRefused:
                pass
            barrier.wait()
        return won

    with ThreadPoolExecutor(captures) as threads:
        winners = [path for won in threads.map(capture, range(captures)) for path in won]
    found = entries(state)
    assert len(winners) == rounds
    assert sorted(winners) == sorted(entry.path for entry in found)
    assert [entry.start_offset for entry in found] == [0, *(entry.end_offset for entry in found)][:-1]
    assert intents(state) == rounds * (captures - 1)


def test_a_commit_whose_answer_was_lost_still_gives_its_receipt(
    state: Database, log: LogDriver, database: str, proxy: Proxy
) -> None:
    remote = Database(proxy.conninfo(database), SCHEMA)
    file = staged()
    log.index.intend([file.path])
    proxy.lose_answer(COMMIT)
    receipt = LogIndex(remote, PIPELINE).claim([file], epoch=log.epoch, expected=Lsn(1000), position=Lsn(1100))
    remote.close()

    flushed = log.index.flushed()
    assert flushed is not None
    assert receipt == Receipt(Lsn(1100), flushed.claim_id or "")
    assert offsets(state) == [(0, 10)]


def test_a_commit_that_never_arrived_is_not_taken_for_made(
    state: Database, log: LogDriver, database: str, proxy: Proxy
) -> None:
    remote = Database(proxy.conninfo(database), SCHEMA)
    index = LogIndex(remote, PIPELINE)
    file, claim_id = staged(), new_id()
    log.index.intend([file.path])
    proxy.lose_request(COMMIT)
    with pytest.raises(StateUnavailable, match="was not made"):
        index.claim([file], epoch=log.epoch, expected=Lsn(1000), position=Lsn(1100), claim_id=claim_id)
    assert offsets(state) == []

    index.claim([file], epoch=log.epoch, expected=Lsn(1000), position=Lsn(1100), claim_id=claim_id)
    remote.close()
    assert offsets(state) == [(0, 10)]


def test_an_outcome_that_cannot_be_learned_is_settled_by_repeating_the_claim(
    state: Database, log: LogDriver, database: str, proxy: Proxy
) -> None:
    remote = Database(proxy.conninfo(database), SCHEMA)
    index = LogIndex(remote, PIPELINE, patience_s=0.3)
    file, claim_id = staged(), new_id()
    log.index.intend([file.path])
    proxy.lose_answer(COMMIT, then_refuse=True)
    with pytest.raises(StateUnavailable, match="is not known"):
        index.claim([file], epoch=log.epoch, expected=Lsn(1000), position=Lsn(1100), claim_id=claim_id)

    proxy.accept_again()
    receipt = index.claim([file], epoch=log.epoch, expected=Lsn(1000), position=Lsn(1100), claim_id=claim_id)
    remote.close()
    assert receipt == Receipt(Lsn(1100), claim_id)
    assert offsets(state) == [(0, 10)]


def test_a_claim_whose_backend_is_ended_before_the_commit_leaves_nothing(
    state: Database, log: LogDriver, database: str
) -> None:
    """The claim waits for the row of the position; there its backend is ended from outside."""
    file = staged()
    log.index.intend([file.path])
    waiting = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(database) as blocker, psycopg.connect(database, autocommit=True) as admin:
        blocker.execute(f"SELECT FROM {SCHEMA}.flushed_lsn FOR UPDATE")
        with ThreadPoolExecutor(1) as thread:
            claim = thread.submit(log.index.claim, [file], epoch=log.epoch, expected=Lsn(1000), position=Lsn(1100))
            (pid,) = wait_for(lambda: admin.execute(waiting).fetchall(), what="the claim to wait")[0]
            admin.execute("SELECT pg_terminate_backend(%s)", [pid])
            wait_for(
                lambda: admin.execute(waiting + " AND pid <> %s", [pid]).fetchone(), what="it to ask for the outcome"
            )
            blocker.rollback()
            with pytest.raises(StateUnavailable, match="was not made"):
                claim.result()
    assert offsets(state) == []
    log.index.claim([file], epoch=log.epoch, expected=Lsn(1000), position=Lsn(1100))
    assert offsets(state) == [(0, 10)]


def test_claims_go_on_after_the_server_was_restarted(state: Database, log: LogDriver, postgres: PostgresServer) -> None:
    log.claim(staged())
    postgres.restart(crash=True)
    log.claim(staged())
    assert offsets(state) == [(0, 10), (10, 20)]


class TestEpochs:
    def test_a_new_epoch_starts_the_log_again_and_leaves_the_files_to_retention(
        self, state: Database, log: LogDriver
    ) -> None:
        old = staged()
        log.claim(old)
        log.begin_epoch(Lsn(5000))
        assert entries(state) == []
        assert Retention(state, PIPELINE).garbage() == [old.path]

        log.claim(staged(records=2))
        assert offsets(state) == [(0, 2)]
        assert {entry.epoch for entry in entries(state)} == {log.epoch}

    def test_repeating_the_begin_of_an_epoch_changes_nothing(self, state: Database, log: LogDriver) -> None:
        log.claim(staged())
        before = log.identity.load()
        log.identity.begin_epoch(
            epoch=log.epoch,
            system_identifier=1,
            timeline=9,
            slot_name="x",
            publication_name="y",
            publication_oid=2,
            position=Lsn(1),
        )
        assert log.identity.load() == before
        assert log.index.flushed() is not None
        assert offsets(state) == [(0, 10)]

    def test_the_identity_is_kept_whole(self, state: Database, log: LogDriver) -> None:
        identity = log.identity.load()
        assert identity is not None
        assert (identity.epoch, identity.system_identifier, identity.timeline) == (log.epoch, 2**64 - 5, 1)
        assert (identity.slot_name, identity.publication_name) == ("shop_slot", "shop_pub")
        assert identity.publication_oid == 17000
        assert Identity(state, "unknown").load() is None

    def test_a_claim_and_a_new_epoch_at_the_same_moment_leave_one_whole_log(
        self, state: Database, log: LogDriver
    ) -> None:
        for _ in range(10):
            old_epoch, expected, file = log.epoch, log.position, staged()
            log.index.intend([file.path])
            with ThreadPoolExecutor(2) as threads:
                claim = threads.submit(
                    log.index.claim, [file], epoch=old_epoch, expected=expected, position=Lsn(expected + 1)
                )
                threads.submit(log.begin_epoch, Lsn(expected + 50)).result()
                assert isinstance(claim.exception(), ClaimRefused | None)
            flushed = log.index.flushed()
            assert flushed is not None
            assert (flushed.epoch, flushed.position) == (log.epoch, log.position)
            assert entries(state) == []
