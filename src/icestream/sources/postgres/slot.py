"""The replication slot: what the server remembers for us."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGconn, PGresult

from icestream.errors import SlotInUse, SlotLost, SourceError, SourceUnavailable
from icestream.model.position import Lsn
from icestream.sources.postgres.connection import Connection, connect_replication, querying

PLUGIN: Final = "pgoutput"

_SLOT: Final = """
SELECT s.slot_name, s.plugin, s.database, s.active, s.active_pid,
       s.confirmed_flush_lsn::text, s.restart_lsn::text, s.wal_status,
       coalesce(to_jsonb(s) ->> 'invalidation_reason',
                CASE WHEN (to_jsonb(s) ->> 'conflicting')::boolean THEN 'conflicting' END),
       s.safe_wal_size
  FROM pg_replication_slots s
 WHERE s.slot_name = %s
"""

_POSITION: Final = """
SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END)::text
"""
_TAKE_TURN: Final = "SELECT pg_try_advisory_lock(hashtextextended('icestream slot ' || %s, 0))"
_END_TURN: Final = "SELECT pg_advisory_unlock(hashtextextended('icestream slot ' || %s, 0))"

_UNDEFINED_OBJECT: Final = "42704"
_DUPLICATE_OBJECT: Final = "42710"
_OBJECT_IN_USE: Final = "55006"
_NOT_IN_PREREQUISITE_STATE: Final = "55000"
_UNDEFINED_FILE: Final = "58P01"
_TOO_MANY_SLOTS: Final = "53400"
_NO_PRIVILEGE: Final = "42501"

_LOOK_UP_MS: Final = 100

COPY_ANEW: Final = "run `icestream resync` for the tables that you want copied anew, then start again"


@dataclass(frozen=True)
class Slot:
    """A slot as `pg_replication_slots` shows it."""

    name: str
    plugin: str | None
    database: str | None
    active: bool
    active_pid: int | None
    confirmed: Lsn | None
    restart: Lsn | None
    wal_status: str | None  # reserved, extended, unreserved or lost
    invalidation: str | None  # why the server gave it up, where it says so
    safe_bytes: int | None = None  # of WAL that can still be written before the server gives it up; None: no limit

    @property
    def is_lost(self) -> bool:
        return self.wal_status == "lost" or self.invalidation is not None


@dataclass(frozen=True)
class Retained:
    """WAL that the server keeps for a slot."""

    size: int
    unread: int  # the part of it that was not acknowledged yet

    @property
    def held_by(self) -> str:
        """What has to come to an end before the server can let go of most of it."""
        is_read = self.unread < self.size - self.unread
        return "a transaction that is still open in the source" if is_read else "changes that are not captured yet"


@dataclass(frozen=True)
class CreatedSlot:
    """A new slot. Its snapshot can be imported until the next command on the connection that made it."""

    name: str
    position: Lsn
    snapshot: str


@dataclass(frozen=True)
class System:
    """The cluster a replication connection speaks to."""

    identifier: int
    timeline: int
    position: Lsn
    is_standby: bool = False


def find_slot(conn: Connection, name: str) -> Slot | None:
    with querying():
        row = conn.execute(_SLOT, (name,)).fetchone()
    if row is None:
        return None
    name, plugin, database, active, pid, confirmed, restart, *others = row
    return Slot(name, plugin, database, active, pid, _lsn(confirmed), _lsn(restart), *others)


def read_position(conn: Connection) -> Lsn:
    """Where the source is now."""
    with querying():
        (position,) = conn.execute(_POSITION).fetchall()[0]
    return Lsn.parse(position)


def retained(slot: Slot, written: Lsn) -> Retained | None:
    """None: the slot keeps nothing any more."""
    if slot.restart is None:
        return None
    return Retained(max(0, written - slot.restart), max(0, written - (slot.confirmed or slot.restart)))


@contextmanager
def turn(conn: Connection, name: str) -> Iterator[None]:
    """One capture at a time judges, drops and creates the slot. Raises SlotInUse when it is another one's turn."""
    with querying():
        (taken,) = conn.execute(_TAKE_TURN, (name,)).fetchall()[0]
    if not taken:
        raise slot_in_use(name)
    try:
        yield
    finally:
        with suppress(psycopg.OperationalError):  # a lost connection ends the turn by itself
            conn.execute(_END_TURN, (name,))


def drop_slot(conn: Connection, name: str) -> None:
    """Raises SlotInUse while somebody reads it. A slot that is not there is fine."""
    if find_slot(conn, name) is None:
        return
    with querying():
        try:
            conn.execute("SELECT pg_drop_replication_slot(%s)", (name,))
        except psycopg.errors.ObjectInUse as err:
            raise slot_in_use(name) from err


def create_slot(
    pgconn: PGconn, name: str, *, temporary: bool = False, give_up: Callable[[], bool] | None = None
) -> CreatedSlot:
    """Makes a slot and exports its snapshot; waits for the transactions that are running now, or until `give_up`.

    A temporary slot ends with its connection. Raises SourceUnavailable after `give_up`, which is asked often.
    """
    # The older form of the command: 14 does not know the options in parentheses, 18 still takes this one.
    words = ["CREATE_REPLICATION_SLOT", quoted(name), *(["TEMPORARY"] if temporary else [])]
    command = " ".join([*words, "LOGICAL", PLUGIN, "EXPORT_SNAPSHOT"])
    result = _run(pgconn, command, give_up)
    if result.status != pq.ExecStatus.TUPLES_OK:
        raise replication_failure(result, name)
    _, position, snapshot, _ = (_text(result, column) for column in range(4))
    return CreatedSlot(name, Lsn.parse(position), snapshot)


def identify_system(pgconn: PGconn) -> System:
    result = pgconn.exec_(b"IDENTIFY_SYSTEM")
    if result.status != pq.ExecStatus.TUPLES_OK:
        raise replication_failure(result, "")
    recovery = pgconn.exec_(b"SELECT pg_is_in_recovery()")
    if recovery.status != pq.ExecStatus.TUPLES_OK:
        raise replication_failure(recovery, "")
    is_standby = _text(recovery, 0) == "t"
    return System(int(_text(result, 0)), int(_text(result, 1)), Lsn.parse(_text(result, 2)), is_standby)


def identify_source(conninfo: str) -> System:
    """As `identify_system`, over a replication connection of its own. Raises as `connect_replication` does."""
    pgconn = connect_replication(conninfo)
    try:
        return identify_system(pgconn)
    finally:
        pgconn.finish()


def replication_failure(result: PGresult, slot: str) -> SourceError:
    """What it means that a replication command failed, or that the stream broke off."""
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    reason = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"the connection was lost").decode()
    if state == _OBJECT_IN_USE:
        return slot_in_use(slot)
    if state == _DUPLICATE_OBJECT:
        return SourceError(f"replication slot {slot!r} exists already", hint="run `icestream status`")
    if state == _TOO_MANY_SLOTS:
        return SourceError(f"the server has no free replication slot: {reason}", hint="raise `max_replication_slots`")
    if state == _NO_PRIVILEGE:
        return SourceError(f"the user may not replicate: {reason}", hint="run `ALTER ROLE <user> REPLICATION`")
    if state == _UNDEFINED_OBJECT and "publication" in reason:
        return SlotLost(f"the stream cannot be decoded: {reason}", hint=COPY_ANEW)
    if state == _UNDEFINED_OBJECT:
        return SlotLost(f"replication slot {slot!r} is gone: {reason}", hint=COPY_ANEW)
    if state == _UNDEFINED_FILE or (state == _NOT_IN_PREREQUISITE_STATE and "slot" in reason):
        return SlotLost(f"replication slot {slot!r} cannot be read any more: {reason}", hint=COPY_ANEW)
    if state == _NOT_IN_PREREQUISITE_STATE:
        return SourceError(f"the source cannot replicate: {reason}", hint="run `icestream check`")
    return SourceUnavailable(f"replication from slot {slot!r} was interrupted: {reason}")


def slot_in_use(name: str) -> SlotInUse:
    return SlotInUse(
        f"replication slot {name!r} is read by another process",
        hint="if that is not another Icestream, end it: see active_pid in pg_replication_slots",
    )


def dropping(name: str) -> str:
    """What a person may do with a slot that we leave alone."""
    return f"run `SELECT pg_drop_replication_slot('{name}')`"


def quoted(name: str) -> str:
    """A name in the replication grammar, which knows no parameters."""
    return '"' + name.replace('"', '""') + '"'


def _run(pgconn: PGconn, command: str, give_up: Callable[[], bool] | None) -> PGresult:
    pgconn.send_query(command.encode())
    waiting = select.poll()
    waiting.register(pgconn.socket, select.POLLIN)
    while pgconn.is_busy():
        if give_up is not None and give_up():
            with suppress(psycopg.OperationalError):
                pgconn.get_cancel().cancel()  # the server would notice a closed connection only after its wait
            raise SourceUnavailable("creating a replication slot was given up while it waited for transactions to end")
        waiting.poll(_LOOK_UP_MS)
        _consume(pgconn)
    result = pgconn.get_result()
    if result is None:
        raise SourceUnavailable("the server gave no answer to a replication command")
    while pgconn.get_result() is not None:
        pass
    return result


def _consume(pgconn: PGconn) -> None:
    try:
        pgconn.consume_input()
    except psycopg.OperationalError as err:
        raise SourceUnavailable("the replication connection was lost") from err


def _lsn(text: str | None) -> Lsn | None:
    return None if text is None else Lsn.parse(text)


def _text(result: PGresult, column: int) -> str:
    return (result.get_value(0, column) or b"").decode()
