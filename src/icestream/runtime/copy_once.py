"""`icestream snapshot`, and `run` with `snapshot_only`: the roles run until all tables are copied, then they end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from icestream.capture.selection import define_tables
from icestream.config.settings import Settings
from icestream.errors import IcestreamError
from icestream.model.table import TableState
from icestream.observe.logs import fields
from icestream.runtime import exits
from icestream.runtime.opening import opened_source
from icestream.runtime.running import beside
from icestream.runtime.supervisor import Supervisor
from icestream.state.database import Database
from icestream.state.identity import Identity
from icestream.state.tables import TableRow, Tables

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.5
_SETTLED = (TableState.LIVE, TableState.PARKED)


def run_until_copied(supervisor: Supervisor, settings: Settings, db: Database, stop: threading.Event) -> int:
    """The exit code: 0 if all tables are live. Whoever sets `stop` earlier ends it; the next start goes on."""
    copies, code = _Copies(settings, db), exits.OK
    if not copies.are_settled():
        with _stopping_when(copies.are_settled, stop):
            code = supervisor.run(stop)
    left = copies.left() if code == exits.OK else []
    for row in left:
        log.error("not copied", extra=fields(table=row.key, state=row.state.value, reason=row.reason, hint=row.hint))
    return exits.FAILED if left else code


class _Copies:
    """The tables that the settings name, and where they stand."""

    def __init__(self, settings: Settings, db: Database) -> None:
        self._identity = Identity(db, settings.pipeline)
        self._tables = Tables(db, settings.pipeline, settings.state.group)
        with opened_source(settings) as conn:
            definitions = define_tables(conn, settings, self._tables.all())
        self._keys = {definition.target.key for definition in definitions}

    def are_settled(self) -> bool:
        """Not before the slot is there: a table that is not to be copied is live even sooner."""
        rows = self._rows()
        is_known = self._keys == {row.key for row in rows}
        return is_known and self._identity.load() is not None and all(row.state in _SETTLED for row in rows)

    def left(self) -> list[TableRow]:
        return [row for row in self._rows() if row.state is not TableState.LIVE]

    def _rows(self) -> list[TableRow]:
        return [row for row in self._tables.all() if row.key in self._keys and row.state is not TableState.REMOVED]


def _stopping_when(is_done: Callable[[], bool], stop: threading.Event) -> AbstractContextManager[None]:
    """Looks again and again while the block runs."""

    def look(ended: threading.Event) -> None:
        while not ended.wait(_LOOK_EVERY_S) and not stop.is_set():
            try:
                if is_done():
                    stop.set()
            except IcestreamError as err:
                log.debug("not looked", exc_info=err)

    return beside(look, name="copies")
