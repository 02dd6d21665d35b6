"""Before streaming: source and state are brought into agreement, or it is said why they cannot be.

A fresh start, and what a crash after each of its steps leads to:

    tables noted       the same again
    slot intended      the same again
    slot created       no epoch knows it, but the intent does: it is dropped and made anew
    epoch begun        the tables get a snapshot from a temporary slot
    snapshot exported  the same
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from icestream.capture.found import Found, begins_anew, look, require_ours, require_same_source
from icestream.capture.membership import Membership
from icestream.capture.options import CaptureOptions
from icestream.capture.selection import define_tables
from icestream.capture.session import Standing
from icestream.capture.snapshots import CopySnapshots
from icestream.capture.untold import Untold
from icestream.config.settings import Settings
from icestream.errors import SlotLost, StateError
from icestream.model.ids import new_epoch
from icestream.model.position import Lsn
from icestream.model.table import Relation, TableName, TableState
from icestream.observe.logs import fields
from icestream.observe.steps import reached
from icestream.sources.postgres.catalog import read_tables
from icestream.sources.postgres.connection import Connection, connect, connect_replication, querying
from icestream.sources.postgres.ddl_trigger import find_trigger
from icestream.sources.postgres.publication import Publication, ensure_publication
from icestream.sources.postgres.slot import COPY_ANEW, create_slot, drop_slot, slot_in_use, turn
from icestream.sources.postgres.stream import feedback_interval
from icestream.state.database import Database
from icestream.state.identity import Identity
from icestream.state.log_entries import LogEntries
from icestream.state.sightings import Sightings
from icestream.state.tables import Tables

log = logging.getLogger(__name__)

_LOCK_TIMEOUT = "SET lock_timeout = '10s'"  # some of what is asked locks tables; who waits cannot be stopped


class Start:
    """Every method may be repeated: after a failure, and in a new process after a crash."""

    def __init__(
        self, settings: Settings, options: CaptureOptions, db: Database, snapshots: CopySnapshots, untold: Untold
    ) -> None:
        self._settings = settings
        self._options = options
        self._snapshots = snapshots
        self._untold = untold
        self._db = db
        self._identity = Identity(db, options.pipeline)
        self._entries = LogEntries(db, options.pipeline)
        self._tables = Tables(db, options.pipeline)
        self._sightings = Sightings(db, options.pipeline)
        self._membership = Membership(self._tables, options.publication)
        self._strangers: set[int] = set()  # relations that bore the name of a table, and were looked at since

    def prepare(self, stop: threading.Event) -> None:
        """Once per process: tables, publication, slot and epoch are as the settings ask.

        Raises WrongCluster or SlotLost when going on would lose changes without a word; the tables are parked then.
        Raises SlotInUse, and has changed nothing, while another capture reads the slot.
        """
        with self._looking() as (conn, found):
            require_ours(found, conn.info.dbname)
            definitions = define_tables(conn, self._settings, self._tables.all())
            self._tables.sync(definitions, [self._settings.state.group])
            beginning = self._must_begin(found)
            if beginning:
                self._snapshots.withdraw()
            else:
                self._membership.settle(conn)
            publication = self._publish(conn, [definition.source for definition in definitions])
            self._membership.agree(conn)
            self._untold.settle(conn)
            if beginning:
                self._begin(conn, found, publication, stop)

    def standing(self) -> Standing:
        """Before every connection: where to go on. Raises as `prepare` does."""
        with self._looking() as (conn, found):
            if found.identity is None:
                raise StateError("the pipeline's identity is gone from the state", hint="start again")
            reason = found.disagreement()
            if reason is not None or found.flushed is None:
                raise self.refuse(reason or "")
            self._settle(conn, found)
            rows = [row for row in self._tables.all() if row.state is not TableState.REMOVED]
            tables = {row.pg_oid: row.key for row in rows}
            return Standing(
                epoch=found.identity.epoch,
                publication_oid=found.identity.publication_oid,
                flushed=found.flushed.position,
                tables=tables,
                names=frozenset(row.configured for row in rows if row.state is not TableState.PARKED),
                strangers=self._strangers,
                relations=self._relations(conn, tables, found.flushed.position),
                feedback_s=feedback_interval(conn, self._options.standby_interval_s),
                trigger=find_trigger(conn),
            )

    def _settle(self, conn: Connection, found: Found) -> None:
        """A publication of ours gets the tables that were dropped and created again, or that someone took out."""
        self._membership.settle(conn)
        names = self._membership.names_of(conn)
        if found.publication is not None and found.publication.owner == self._options.pipeline and names:
            self._publish(conn, names)
        self._membership.agree(conn)

    def _publish(self, conn: Connection, names: list[TableName]) -> Publication:
        name, pipeline = self._options.publication, self._options.pipeline
        return ensure_publication(conn, name, names, pipeline=pipeline)

    def _relations(self, conn: Connection, tables: Mapping[int, str], flushed: Lsn) -> dict[int, Relation]:
        """The newest shape of each table that is in the log; of a table without changes yet, the one that was seen when
        the log came to where it is. The catalog of now may be far ahead of the stream."""
        seen = [sighting.relation_at(flushed) for sighting in self._sightings.all().values()]
        claimed = self._entries.latest_relations().values()
        known = {relation.oid: relation for relation in (*seen, *claimed) if relation and relation.oid in tables}
        others = read_tables(conn, [oid for oid in tables if oid not in known])
        return known | {table.oid: table.relation() for table in others}

    def refuse(self, reason: str) -> SlotLost:
        """Parks what is live or just being copied: its changes are missing, and only a new copy brings them back.

        Gives what to raise.
        """
        for row in self._tables.all():
            if row.state in (TableState.LIVE, TableState.COPYING):
                self._tables.park(row.key, reason)
        return SlotLost(f"{reason}; changes are missing, so the tables are parked", hint=COPY_ANEW)

    @contextmanager
    def _looking(self) -> Iterator[tuple[Connection, Found]]:
        """What there is, and that no other capture changes it within the block."""
        with closing(connect(self._options.source)) as conn, turn(conn, self._options.slot):
            with querying():
                conn.execute(_LOCK_TIMEOUT)
            found = look(conn, self._options, self._db)
            require_same_source(found, self._options)
            if found.slot is not None and found.slot.active:
                raise slot_in_use(found.slot.name)
            yield conn, found

    def _must_begin(self, found: Found) -> bool:
        """At the very first start; or when the log was lost and someone has asked for new copies since."""
        if found.identity is None:
            return True
        reason = found.disagreement()
        if reason is None:
            return False
        if begins_anew({row.state for row in self._tables.all()}):
            log.warning("log begins anew", extra=fields(reason=reason))
            return True
        raise self.refuse(reason)

    def _begin(self, conn: Connection, found: Found, publication: Publication, stop: threading.Event) -> None:
        self._clear_the_way(conn, found)
        self._identity.intend_slot(self._options.slot, found.system.identifier)
        log.info("creating slot", extra=fields(slot=self._options.slot, note="waits for running transactions"))
        pgconn = connect_replication(self._options.source)
        try:
            created = create_slot(pgconn, self._options.slot, give_up=stop.is_set)
            reached("slot created")
            self._identity.begin_epoch(
                epoch=new_epoch(),
                system_identifier=found.system.identifier,
                timeline=found.system.timeline,
                slot_name=self._options.slot,
                publication_name=publication.name,
                publication_oid=publication.oid,
                position=created.position,
            )
            reached("epoch begun")
            waiting = [row for row in self._tables.all() if row.state is TableState.PENDING]
            if waiting:
                self._snapshots.offer(created, waiting)
        finally:
            pgconn.finish()

    def _clear_the_way(self, conn: Connection, found: Found) -> None:
        """Drops the slot of a start that did not get as far as its epoch, or of the epoch that ends now."""
        if found.slot is None:
            return
        log.warning(
            "dropping slot that no epoch knows", extra=fields(slot=found.slot.name, confirmed=found.slot.confirmed)
        )
        drop_slot(conn, found.slot.name)
