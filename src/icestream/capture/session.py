"""One replication connection, from its first message to its end, with the two threads that work for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from icestream.capture.assembler import Assembler
from icestream.capture.flush import Flusher
from icestream.capture.handover import Handover
from icestream.capture.identify import Identifier
from icestream.capture.metrics import CaptureMetrics
from icestream.capture.options import CaptureOptions
from icestream.capture.patience import Patience
from icestream.capture.receiver import Receiver
from icestream.errors import TablesChanged
from icestream.log.store import Store
from icestream.log.writer import LogWriter
from icestream.model.position import Lsn
from icestream.model.table import Relation, TableName
from icestream.observe.health import Pulse
from icestream.sources.postgres.catalog import read_tables
from icestream.sources.postgres.connection import connect, connect_replication
from icestream.sources.postgres.stream import ReplicationStream
from icestream.state.log_index import LogIndex


@dataclass(frozen=True)
class Standing:
    """Where the log stands, and which relations belong to which of its tables."""

    epoch: str
    publication_oid: int
    flushed: Lsn
    tables: Mapping[int, str]  # oid in the source -> key of the table
    relations: Mapping[int, Relation]  # oid in the source -> the newest relation that is known
    feedback_s: float
    trigger: str | None = None  # the event triggers of the source, if it has them
    names: frozenset[TableName] = frozenset()  # of the tables that are followed
    strangers: set[int] = field(
        default_factory=set
    )  # relations of such a name that are none of the tables, as is known

    def require_ours(self, relation: Relation) -> None:
        """Raises TablesChanged when another relation has the name of a table; once, as it may be gone by now."""
        name, oid = TableName(relation.schema, relation.name), relation.oid
        if name in self.names and oid not in self.tables and oid not in self.strangers:
            self.strangers.add(oid)
            raise TablesChanged(f"{name} is another table than before (oid {oid})")


class Session:
    """Nothing of a session outlives it but what it claimed: the next one begins at the stored position."""

    def __init__(
        self,
        options: CaptureOptions,
        standing: Standing,
        index: LogIndex,
        store: Store,
        metrics: CaptureMetrics,
        pulse: Pulse,
    ) -> None:
        self._options = options
        self._standing = standing
        self._index = index
        self._store = store
        self._metrics = metrics
        self._pulse = pulse

    def run(
        self,
        stop: threading.Event,
        streaming: threading.Event,
        changed: threading.Event,
        ddl_told: Callable[[], None] = lambda: None,
    ) -> None:
        """Streams until `stop`, then drains. Raises what ended it; the flusher has ended then, too.

        `streaming` is set while the slot is this session's own. `changed` ends it with TablesChanged. `ddl_told` is
        called when the source's event triggers have told of a change of shape.
        """
        stream = self._open_stream()
        try:
            streaming.set()
            self._metrics.connected()
            self._capture(stream, stop, changed, ddl_told)
        finally:
            streaming.clear()
            stream.close()

    def _capture(
        self,
        stream: ReplicationStream,
        stop: threading.Event,
        changed: threading.Event,
        ddl_told: Callable[[], None],
    ) -> None:
        options, standing = self._options, self._standing
        handover = Handover(options.flush.size)
        assembler = Assembler(
            standing.tables,
            standing.flushed,
            spill_folder=options.spill_folder,
            memory_bytes=options.transaction_bytes,
            require_ours=standing.require_ours,
            ddl_told=ddl_told,
        )
        receiver = Receiver(
            stream,
            assembler,
            handover,
            options.flush,
            idle_interval_s=options.standby_interval_s,
            metrics=self._metrics,
            pulse=self._pulse,
        )
        patience = Patience(stop, self._metrics)
        writer = LogWriter(self._store, options.pipeline, self._index.intend, attempt=patience.insist)
        flusher = self._flusher(writer, patience)
        thread = threading.Thread(target=flusher.run, args=(handover,), name="flusher", daemon=True)
        thread.start()
        try:
            receiver.run(stop, changed)
        finally:
            self._pulse.pause("has no stream")
            # What was handed over is whole and may still become durable; the rest is sent again.
            handover.close()
            thread.join()
            assembler.drop()
            flusher.close()
            writer.close()

    def _flusher(self, writer: LogWriter, patience: Patience) -> Flusher:
        return Flusher(
            writer,
            self._index,
            Identifier(self._read_relation, self._standing.relations),
            epoch=self._standing.epoch,
            flushed=self._standing.flushed,
            attempt=patience.insist,
            metrics=self._metrics,
            staging_format=self._options.staging_format,
        )

    def _read_relation(self, oid: int) -> Relation | None:
        """On a connection of its own, as it is needed rarely."""
        with closing(connect(self._options.source)) as conn:
            found = read_tables(conn, [oid])
        return found[0].relation() if found else None

    def _open_stream(self) -> ReplicationStream:
        pgconn = connect_replication(self._options.source)
        try:
            return ReplicationStream(
                pgconn,
                slot=self._options.slot,
                publication=self._options.publication,
                start=self._standing.flushed,
                feedback_s=self._standing.feedback_s,
                with_messages=self._standing.trigger is not None,
            )
        except BaseException:
            pgconn.finish()
            raise
