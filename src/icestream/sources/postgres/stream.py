"""The replication stream: pgoutput messages in, feedback out.

Owned by one thread. `read` is the hottest loop of the product: a row costs one look-up by the first bytes of its
message and two appends; everything that is not a row of a known kind goes to the sink's `handle`.
"""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, TypeAlias

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGconn

from icestream.errors import ProtocolError, SourceError, SourceUnavailable
from icestream.model.position import ZERO, Lsn
from icestream.model.receipt import Receipt
from icestream.sources.postgres.connection import Connection, querying
from icestream.sources.postgres.slot import quoted, replication_failure

HEADER: Final = 25  # bytes of XLogData before the pgoutput message
# Type, relation and shape of a row; inside a streamed block type, subtransaction and relation.
KEY_END: Final = HEADER + 9

Route: TypeAlias = tuple[Callable[[memoryview], object], Callable[[int], object]]

_READ_BYTES: Final = 256 * 1024  # between two looks at the clock
_KEEPALIVE: Final = struct.Struct(">cQqB")
_FEEDBACK: Final = struct.Struct(">cQQQqB")
_POSTGRES_EPOCH_S: Final = 946_684_800
_GOODBYE_S: Final = 2.0
_GATHER_S: Final = 0.0005  # the walsender writes each message by itself; waking up for each costs more than it
_AT_ONCE: Final = float("-inf")  # by the monotonic clock


class Sink(Protocol):
    """Takes what the stream brings, in order.

    `routes` maps the key of a message (its bytes from HEADER to KEY_END) to the two appends that store it: of the
    message from HEADER on, and of its whole size. A message without a route goes to `handle`, which may add one.
    """

    routes: dict[bytes, Route]

    def handle(self, message: memoryview) -> None: ...

    def keepalive(self, position: Lsn) -> None:
        """Everything that was committed before `position` has been sent."""


class ReplicationStream:
    """Streams from `start`; whatever was committed before it is not sent.

    Only a receipt moves the acknowledged position. Feedback is sent when it is due as long as `tend` is called.
    """

    def __init__(
        self,
        pgconn: PGconn,
        *,
        slot: str,
        publication: str,
        start: Lsn,
        feedback_s: float,
        with_messages: bool = False,
    ) -> None:
        self._pgconn = pgconn
        self._slot = slot
        self._feedback_s = feedback_s
        self._acknowledged = ZERO
        self._next_feedback = _AT_ONCE
        result = pgconn.exec_(_start_command(slot, publication, start, pgconn.server_version, with_messages))
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise replication_failure(result, slot)
        self._poll = select.poll()
        self._poll.register(pgconn.socket, select.POLLIN)

    @property
    def acknowledged(self) -> Lsn:
        return self._acknowledged

    def read(self, sink: Sink) -> int:
        """Takes in what has arrived, up to about _READ_BYTES; gives the bytes, 0 when nothing was there.

        Raises SourceUnavailable or what the server's error means when the stream has ended.
        """
        total = self._drain(sink)
        while total < _READ_BYTES:
            self._consume()
            taken = self._drain(sink)
            if not taken:
                break
            total += taken
        return total

    def wait(self, timeout_s: float) -> None:
        """Until something arrives, at most so long; then a moment more, so that one read takes in many messages."""
        if self._poll.poll(max(0.0, timeout_s) * 1000):
            time.sleep(_GATHER_S)

    def acknowledge(self, receipt: Receipt) -> None:
        """The server may forget what is before the receipt's position; the next feedback, due now, says so."""
        if receipt.position > self._acknowledged:
            self._acknowledged = receipt.position
            self._next_feedback = _AT_ONCE

    def tend(self) -> bool:
        """Sends feedback if it is due; says whether it did. Has to be called at least every second."""
        if time.monotonic() < self._next_feedback:
            return False
        self._send_feedback()
        return True

    def close(self) -> None:
        self._pgconn.finish()

    def finish(self) -> None:
        """Tells the server the last position and ends the stream in order, so that the server has read it.

        Everything is durable by now: a server that cannot be told sends again, and that is dropped.
        """
        with suppress(psycopg.OperationalError, SourceUnavailable):
            self._send_feedback()
            self._pgconn.put_copy_end()
            self._pgconn.flush()
            deadline = time.monotonic() + _GOODBYE_S
            while not self._has_ended() and time.monotonic() < deadline:
                self.wait(0.1)
                self._consume()
        self.close()

    def _drain(self, sink: Sink) -> int:
        get, routes = self._pgconn.get_copy_data, sink.routes
        total = 0
        try:
            size, message = get(1)
            while size > 0:
                route = routes.get(message[HEADER:KEY_END].tobytes())
                if route is None:
                    self._other(sink, message)
                else:
                    route[0](message[HEADER:])
                    route[1](size)
                total += size
                size, message = get(1)
        except psycopg.OperationalError as err:
            raise self._lost() from err
        if size < 0:
            raise self._ended()
        return total

    def _other(self, sink: Sink, message: memoryview) -> None:
        kind = message[0]
        if kind == ord("w"):
            sink.handle(message)
        elif kind == ord("k") and len(message) == _KEEPALIVE.size:
            _, position, _, wants_reply = _KEEPALIVE.unpack(message)
            sink.keepalive(Lsn(position))
            if wants_reply:
                self._next_feedback = _AT_ONCE
        else:
            raise ProtocolError(f"replication message of unknown type {chr(kind)!r} and {len(message)} bytes")

    def _send_feedback(self) -> None:
        position = int(self._acknowledged)
        now = int((time.time() - _POSTGRES_EPOCH_S) * 1_000_000)
        try:
            self._pgconn.put_copy_data(_FEEDBACK.pack(b"r", position, position, position, now, 0))
            self._pgconn.flush()
        except psycopg.OperationalError as err:
            raise self._lost() from err
        self._next_feedback = time.monotonic() + self._feedback_s

    def _consume(self) -> None:
        try:
            self._pgconn.consume_input()
        except psycopg.OperationalError as err:
            raise self._lost() from err

    def _has_ended(self) -> bool:
        size = 1
        while size > 0:
            size, _ = self._pgconn.get_copy_data(1)
        return size < 0

    def _lost(self) -> SourceError:
        return SourceUnavailable(f"the replication connection of slot {self._slot!r} was lost")

    def _ended(self) -> SourceError:
        result = self._pgconn.get_result()
        if result is None or result.status != pq.ExecStatus.FATAL_ERROR:
            return SourceUnavailable(f"the server has ended the stream of slot {self._slot!r}")
        return replication_failure(result, self._slot)


def feedback_interval(conn: Connection, standby_interval_s: float) -> float:
    """How often the server must hear from us: three times within the silence it allows."""
    with querying():
        row = conn.execute(
            "SELECT setting::float8 / 1000 FROM pg_settings WHERE name = 'wal_sender_timeout'"
        ).fetchone()
    allowed_s = float(row[0]) if row else 0.0
    return min(standby_interval_s, allowed_s / 3) if allowed_s else standby_interval_s


def _start_command(slot: str, publication: str, start: Lsn, server_version: int, with_messages: bool) -> bytes:
    options = {"proto_version": "1", "publication_names": quoted(publication)}
    if server_version >= 140000:
        options |= {"proto_version": "2", "streaming": "on", **({"messages": "on"} if with_messages else {})}
    listed = ", ".join(f"{name} {_literal(value)}" for name, value in options.items())
    return f"START_REPLICATION SLOT {quoted(slot)} LOGICAL {start} ({listed})".encode()


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
