"""The snapshots at which first copies are made.

A slot's exported snapshot lives only until the next command on its connection. So it is imported at once by a
connection of its own, which exports it again and stays in its transaction as long as a table is copied at it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import Final

from icestream.capture.held import HeldSnapshot, names_of
from icestream.capture.membership import Membership
from icestream.capture.patience import delays
from icestream.capture.untold import Untold
from icestream.errors import IcestreamError
from icestream.model.ids import new_id
from icestream.model.table import TableState
from icestream.observe.logs import fields
from icestream.observe.steps import reached
from icestream.sources.postgres.connection import connect, connect_replication
from icestream.sources.postgres.slot import CreatedSlot, create_slot
from icestream.state.tables import TableRow, Tables

log = logging.getLogger(__name__)

_ROUND_S: Final = 1.0
_LOOK_UP_S: Final = 0.1  # for the stream to begin


class CopySnapshots:
    """Offers a snapshot to every table that waits for its copy, and holds it until the copies are done.

    Used by one thread at a time: by capture's start, then by the thread that `run` is. Of several captures only the
    one that reads the slot tends; what another one offered is unknown to it, and so withdrawn.
    """

    def __init__(self, source: str, tables: Tables, membership: Membership, untold: Untold) -> None:
        self._source = source
        self._tables = tables
        self._membership = membership
        self._untold = untold
        self._held: list[HeldSnapshot] = []

    def offer(self, created: CreatedSlot, rows: Sequence[TableRow]) -> None:
        """Takes over the new slot's snapshot and offers it to these tables; then the slot's connection is free."""
        held = HeldSnapshot.of(self._source, created)
        self._held.append(held)
        reached("snapshot exported")
        try:
            self._offer(held, rows)
        except BaseException:
            self._release([held])
            raise

    def withdraw(self) -> None:
        """No table is copied at a snapshot of before."""
        self._release(self._held)
        self._note_withdrawn(self._tables.withdraw_copies())

    def run(self, stop: threading.Event, is_streaming: Callable[[], bool]) -> None:
        """Tends the snapshots until `stop`, while this capture reads the slot; failures are logged and tried again."""
        waits = delays()
        while not stop.is_set():
            pause = _ROUND_S if self._held or is_streaming() else _LOOK_UP_S
            try:
                if is_streaming():
                    self.tend(stop)
                elif self._held:
                    self._let_go(self._tables.all())
                waits = delays()
            except Exception as err:
                pause += next(waits)
                log.warning("copy cannot be offered", exc_info=err, extra=fields(next_try_s=pause))
            stop.wait(pause)

    def tend(self, stop: threading.Event) -> None:
        """One round: lets go of what is no longer needed, notices what is lost, serves who waits."""
        rows = self._tables.all()
        self._let_go(rows)
        self._release([held for held in self._held if not held.is_alive()])
        lost = _wanted(rows) - names_of(self._held)
        if lost:  # broken, or offered by an earlier capture
            self._note_withdrawn(self._tables.withdraw_copies(lost))
            rows = self._tables.all()
        waiting = self._published([row for row in rows if row.state is TableState.PENDING])
        if waiting:
            self._offer_new(waiting, stop)

    def close(self) -> None:
        """Lets go of all snapshots. Copies that read one already can still be completed."""
        with suppress(IcestreamError):
            wanted = _wanted(self._tables.all())
            if wanted and wanted <= names_of(self._held):  # another capture's are not ours to withdraw
                self.withdraw()
        self._release(self._held)

    def _offer(self, held: HeldSnapshot, rows: Sequence[TableRow]) -> None:
        keys = {row.key for row in rows}
        offered = self._tables.offer_copy(keys, snapshot_name=held.name, position=held.position)
        log.info("copy offered", extra=fields(position=held.position, tables=len(offered)))

    def _published(self, rows: Sequence[TableRow]) -> list[TableRow]:
        if not rows:
            return []
        with closing(connect(self._source)) as conn:
            published = self._membership.note(conn)
            self._untold.settle(conn)
        return [row for row in rows if row.pg_oid in published]

    def _offer_new(self, rows: Sequence[TableRow], stop: threading.Event) -> None:
        """At a temporary slot: a plain snapshot would not say where in the stream it stands."""
        pgconn = connect_replication(self._source)
        try:
            self.offer(create_slot(pgconn, _temporary_name(), temporary=True, give_up=stop.is_set), rows)
        finally:
            pgconn.finish()

    def _note_withdrawn(self, tables: Sequence[str]) -> None:
        if tables:
            log.info("copy withdrawn", extra=fields(tables=len(tables)))

    def _let_go(self, rows: Sequence[TableRow]) -> None:
        """Of the snapshots at which no table is copied any more."""
        wanted = _wanted(rows)
        self._release([held for held in self._held if held.name not in wanted])

    def _release(self, some: Sequence[HeldSnapshot]) -> None:
        for held in list(some):
            held.release()
            self._held.remove(held)


def _wanted(rows: Sequence[TableRow]) -> frozenset[str]:
    return frozenset(row.snapshot_name for row in rows if row.state is TableState.COPYING and row.snapshot_name)


def _temporary_name() -> str:
    return f"icestream_copy_{new_id().replace('-', '')}"
