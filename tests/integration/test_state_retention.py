"""A staged file goes when every group has passed it, and nothing leaks or goes too early."""

from __future__ import annotations

import pytest

from icestream.model.cursor import Cursor
from icestream.model.position import Lsn
from icestream.model.table import StagedFile, TableName, Target
from icestream.state.cursors import Cursors
from icestream.state.database import Database
from icestream.state.groups import Groups
from icestream.state.log_entries import LogEntries
from icestream.state.retention import Retention
from icestream.state.tables import TableDefinition, Tables
from support.state import PIPELINE, LogDriver, staged

TABLE = "public.orders"
DEFINITION = TableDefinition(Target("public", "orders"), TableName("public", "orders"), 16400)


@pytest.fixture
def retention(state: Database) -> Retention:
    return Retention(state, PIPELINE)


def note(state: Database, log: LogDriver, group: str, offset: int) -> None:
    cursor = Cursor(log.epoch, offset, int(log.position))
    Cursors(state, PIPELINE, group).record(TABLE, cursor, snapshot_id=1, rows=0)


def three_claims(log: LogDriver) -> list[StagedFile]:
    files = [staged() for _ in range(3)]
    for file in files:
        log.claim(file)
    return files


def test_without_a_group_nothing_is_passed(retention: Retention, log: LogDriver) -> None:
    three_claims(log)
    assert retention.give_up_passed(keep_s=0) == 0


def test_a_group_without_cursor_holds_everything(state: Database, retention: Retention, log: LogDriver) -> None:
    three_claims(log)
    Groups(state, PIPELINE).register("default")
    assert retention.give_up_passed(keep_s=0) == 0


def test_the_slowest_group_decides(state: Database, retention: Retention, log: LogDriver) -> None:
    files = three_claims(log)
    for group, offset in (("default", 30), ("audit", 10)):
        Groups(state, PIPELINE).register(group)
        note(state, log, group, offset)
    assert retention.give_up_passed(keep_s=0) == 1
    assert retention.garbage() == [files[0].path]
    assert LogEntries(state, PIPELINE).extent(TABLE).first_offset == 10

    Groups(state, PIPELINE).remove("audit")
    assert retention.give_up_passed(keep_s=0) == 2
    assert sorted(retention.garbage()) == sorted(file.path for file in files)


def test_what_was_passed_is_kept_for_a_while(state: Database, retention: Retention, log: LogDriver) -> None:
    three_claims(log)
    Groups(state, PIPELINE).register("default")
    note(state, log, "default", 30)
    assert retention.give_up_passed(keep_s=3600) == 0
    state.execute("UPDATE {schema}.log_index SET created_at = now() - interval '2 hours' WHERE end_offset <= 20")
    assert retention.give_up_passed(keep_s=3600) == 2


def test_a_cursor_of_another_epoch_passes_nothing(state: Database, retention: Retention, log: LogDriver) -> None:
    Groups(state, PIPELINE).register("default")
    note(state, log, "default", 30)
    log.begin_epoch(log.position)
    three_claims(log)
    assert retention.give_up_passed(keep_s=0) == 0


def test_the_log_of_a_removed_table_is_not_needed(state: Database, retention: Retention, log: LogDriver) -> None:
    three_claims(log)
    Groups(state, PIPELINE).register("default")
    tables = Tables(state, PIPELINE)
    tables.sync([DEFINITION])
    assert retention.give_up_passed(keep_s=0) == 0
    tables.sync([])
    assert retention.give_up_passed(keep_s=0) == 3


def test_the_log_of_a_parked_table_is_not_needed(state: Database, retention: Retention, log: LogDriver) -> None:
    tables = Tables(state, PIPELINE)
    tables.sync([DEFINITION])
    three_claims(log)
    tables.park(TABLE, "reason")
    assert retention.give_up_passed(keep_s=0) == 3
    log.claim(staged())
    tables.request_copy(TABLE)
    assert retention.give_up_passed(keep_s=0) == 0


def live_table(state: Database) -> Tables:
    tables = Tables(state, PIPELINE)
    tables.sync([DEFINITION])
    tables.complete_copy(TABLE, position=Lsn(1000), rows=0)
    return tables


def test_the_log_of_a_table_that_may_be_resumed_is_kept_for_a_while(
    state: Database, retention: Retention, log: LogDriver
) -> None:
    tables = live_table(state)
    three_claims(log)
    note(state, log, "default", 10)
    assert tables.park(TABLE, "no right", seen=tables.get(TABLE), is_resumable=True)
    assert retention.give_up_passed(keep_s=0, parked_keep_s=3600) == 1, "what it had passed goes as ever"
    state.execute("UPDATE {schema}.tables SET resumable_since = now() - interval '2 hours'")
    assert retention.give_up_passed(keep_s=0, parked_keep_s=3600) == 2


def test_a_start_of_capture_does_not_prolong_what_is_kept(
    state: Database, retention: Retention, log: LogDriver
) -> None:
    tables = live_table(state)
    three_claims(log)
    tables.park(TABLE, "no right", seen=tables.get(TABLE), is_resumable=True)
    state.execute("UPDATE {schema}.tables SET resumable_since = now() - interval '2 hours'")
    tables.sync([DEFINITION])
    assert retention.give_up_passed(keep_s=0, parked_keep_s=3600) == 3


@pytest.mark.parametrize("leave", ["park", "remove"])
def test_what_one_group_does_not_read_another_may(
    state: Database, retention: Retention, log: LogDriver, leave: str
) -> None:
    Tables(state, PIPELINE).sync([DEFINITION])
    Groups(state, PIPELINE).register("audit")
    audit = Tables(state, PIPELINE, "audit")
    audit.adopt(lambda source: None if leave == "remove" else Target("audit", source.name))
    if leave == "park":
        audit.park(TABLE, "reason")
    three_claims(log)
    assert retention.give_up_passed(keep_s=0) == 0
    note(state, log, "default", 20)
    assert retention.give_up_passed(keep_s=0) == 2


def test_a_group_that_has_not_adopted_its_tables_holds_everything(
    state: Database, retention: Retention, log: LogDriver
) -> None:
    Tables(state, PIPELINE).sync([DEFINITION])
    Groups(state, PIPELINE).register("audit")
    three_claims(log)
    note(state, log, "default", 30)
    assert retention.give_up_passed(keep_s=0) == 0


def test_forgotten_garbage_is_gone(state: Database, retention: Retention, log: LogDriver) -> None:
    three_claims(log)
    Groups(state, PIPELINE).register("default")
    note(state, log, "default", 30)
    retention.give_up_passed(keep_s=0)
    paths = retention.garbage(limit=2)
    assert len(paths) == 2
    for _ in range(2):
        retention.forget(paths)
    assert len(retention.garbage()) == 1


def test_uploads_that_were_never_claimed_go_after_a_grace_time(
    state: Database, retention: Retention, log: LogDriver
) -> None:
    log.index.intend(["old", "new"])
    log.claim()
    state.execute("UPDATE {schema}.staged_intent SET created_at = now() - interval '2 hours' WHERE path = 'old'")
    log.claim(staged())
    assert retention.give_up_intents(grace_s=3600) == 1
    assert retention.garbage() == ["old"]
    assert retention.give_up_intents(grace_s=0) == 1


def test_uploads_of_a_flush_that_takes_long_are_not_given_up(
    state: Database, retention: Retention, log: LogDriver
) -> None:
    """They are claimed together at its end, and until then no other claim is made."""
    file = staged()
    log.index.intend([file.path])
    assert retention.give_up_intents(grace_s=0) == 0
    log.claim(file)
    assert retention.give_up_intents(grace_s=0) == 0


def test_pipelines_clean_up_for_themselves(state: Database, retention: Retention, log: LogDriver) -> None:
    other = LogDriver(state, "other")
    other.index.intend(["theirs"])
    other.claim()
    other.claim(staged())
    assert retention.give_up_intents(grace_s=0) == 0
    Retention(state, "other").give_up_intents(grace_s=0)
    assert retention.garbage() == []
    retention.forget(["theirs"])
    assert Retention(state, "other").garbage() == ["theirs"]
