"""Messages of one connection to whole transactions, in commit order.

Rows do not come here one by one: the first row of a kind opens a route, and the stream itself stores those that
follow (see `sources.postgres.stream`). A route ends with its transaction or block, or when a relation changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from icestream.capture.batch import Batch
from icestream.capture.transaction import Commit, Transaction
from icestream.errors import ProtocolError
from icestream.model.position import Lsn
from icestream.model.table import Relation
from icestream.sources.postgres import ddl_trigger, pgoutput
from icestream.sources.postgres.stream import HEADER, KEY_END, Route

Numbers: TypeAlias = Mapping[str, int]  # of columns, by name

_ROW_KINDS: Final = frozenset(b"IUD")
_MOST_ROUTES: Final = 4096  # a transaction with a savepoint per row would open one for each
_DISCARD: Final[Route] = (lambda _message: None, lambda _size: None)


@dataclass(frozen=True)
class _Told:
    """A relation and when we were told of it, counted in relation messages of the connection."""

    relation: Relation
    number: int


@dataclass
class _Stream:
    """A streamed transaction. What it is told of relations holds for itself, and for all once it has committed."""

    transaction: Transaction
    relations: dict[int, _Told] = field(default_factory=dict)
    numbers: list[tuple[int, ddl_trigger.Told]] = field(default_factory=list)  # with the subtransaction


class Assembler:
    """Lives as long as one connection; owned by the receiver's thread.

    Transactions that end at or before `flushed` are in the log already and are dropped.
    """

    def __init__(
        self,
        tables: Mapping[int, str],
        flushed: Lsn,
        *,
        spill_folder: Path,
        memory_bytes: int,
        require_ours: Callable[[Relation], None] = lambda _relation: None,
        ddl_told: Callable[[], None] = lambda: None,
    ) -> None:
        self.routes: dict[bytes, Route] = {}
        self.reached = flushed  # every commit up to here is in a batch, or concerns none of our tables
        self.is_caught_up = False  # whether the server had nothing more to send after the last commit
        self.batch = Batch()
        self._tables = tables
        self._flushed = flushed
        self._folder = spill_folder
        self._memory_bytes = memory_bytes
        self._require_ours = require_ours
        self._ddl_told = ddl_told
        self._numbers: dict[int, Numbers] = {}
        self._relations: dict[int, _Told] = {}
        self._told_count = 0
        self._open: Transaction | None = None  # takes the next row
        self._block: _Stream | None = None  # set between Stream Start and Stream Stop
        self._streams: dict[int, _Stream] = {}
        self._handlers: dict[type, Callable[[Any], None]] = {
            pgoutput.Begin: self._begin,
            pgoutput.Commit: self._commit,
            pgoutput.RelationMessage: self._relation_told,
            pgoutput.Truncate: self._truncate,
            pgoutput.LogicalMessage: self._message_told,
            pgoutput.StreamStart: self._stream_start,
            pgoutput.StreamStop: self._stream_stop,
            pgoutput.StreamCommit: self._stream_commit,
            pgoutput.StreamAbort: self._stream_abort,
        }

    def handle(self, message: memoryview) -> None:
        """Any message that no route takes. Raises ProtocolError."""
        if len(message) > HEADER and message[HEADER] in _ROW_KINDS:
            self._open_route(message)
            return
        parsed = pgoutput.parse(message[HEADER:], in_stream=self._block is not None)
        handler = self._handlers.get(type(parsed))
        if handler is not None:  # origins and types say nothing about our tables
            handler(parsed)

    def keepalive(self, position: Lsn) -> None:
        """Between two transactions, everything committed before `position` has been sent."""
        if self._open is None or self._block is not None:
            self.reached = max(self.reached, position)
            self.is_caught_up = True  # the server says so before it waits for more

    def settle(self) -> None:
        """Moves open transactions to disk once they hold `memory_bytes`. To be called every few hundred kilobytes."""
        held = self._uncommitted()
        if sum(transaction.size for transaction in held) >= self._memory_bytes:
            for transaction in held:
                if transaction.size:
                    transaction.move_to_disk()

    def cut(self) -> Batch:
        """The transactions since the last cut, all of them whole."""
        batch, self.batch = self.batch, Batch()
        batch.position = self.reached
        batch.newest = {oid: told.relation for oid, told in self._relations.items()}
        return batch

    def drop(self) -> None:
        """Throws everything away: what is not in the log yet is sent again."""
        for transaction in self._uncommitted():
            transaction.drop()
        self.batch.drop()

    def _uncommitted(self) -> list[Transaction]:
        held = [stream.transaction for stream in self._streams.values()]
        return held if self._open is None or self._block is not None else [*held, self._open]

    def _open_route(self, message: memoryview) -> None:
        start = HEADER + (1 if self._block is None else 5)
        route = self._route(int.from_bytes(message[start : start + 4]))
        if len(self.routes) >= _MOST_ROUTES:
            self.routes.clear()
        self.routes[message[HEADER:KEY_END].tobytes()] = route
        route[0](message[HEADER:])
        route[1](len(message))

    def _route(self, oid: int) -> Route:
        if self._open is None:
            raise ProtocolError(f"a row of relation {oid} came outside of any transaction")
        relation = self._known(oid)
        table = self._tables.get(oid)
        if table is None:
            return _DISCARD
        rows = self._open.rows_of(table, relation)
        return rows.data.extend, rows.sizes.append

    def _known(self, oid: int) -> Relation:
        told = (self._relations if self._block is None else self._block.relations).get(oid)
        if told is None:
            raise ProtocolError(f"a row of relation {oid} came before anything was told of that relation")
        return told.relation

    def _relation_told(self, message: pgoutput.RelationMessage) -> None:
        """Each telling begins rows of its own: what is told again in the same words may mean another column by now."""
        relation, self._told_count = self._numbered(message.relation), self._told_count + 1
        self._require_ours(relation)
        known = self._relations if self._block is None else self._block.relations
        known[relation.oid] = _Told(relation, self._told_count)
        self.routes.clear()

    def _numbered(self, relation: Relation) -> Relation:
        """With the numbers of its columns if an event trigger has just told them; later ones the catalog tells."""
        numbers = self._take_numbers(relation.oid)
        if set(numbers) != {column.name for column in relation.columns}:
            return relation
        columns = (msgspec.structs.replace(column, number=numbers[column.name]) for column in relation.columns)
        return msgspec.structs.replace(relation, columns=tuple(columns))

    def _take_numbers(self, oid: int) -> Numbers:
        if self._block is None:
            return self._numbers.pop(oid, {})
        found = [told.numbers for _, told in self._block.numbers if told.oid == oid]
        self._block.numbers = [(xid, told) for xid, told in self._block.numbers if told.oid != oid]
        return found[-1] if found else {}

    def _message_told(self, message: pgoutput.LogicalMessage) -> None:
        if message.prefix != ddl_trigger.PREFIX or not message.transactional:
            return
        told = ddl_trigger.parse_message(message.content)
        if self._block is not None:
            self._block.numbers.append((message.xid or 0, told))
        elif told.oid:
            self._numbers[told.oid] = told.numbers
        self._ddl_told()

    def _truncate(self, message: pgoutput.Truncate) -> None:
        marker = b"T" if message.xid is None else b"T" + message.xid.to_bytes(4)
        for oid in message.relation_oids:
            append, count = self._route(oid)
            append(memoryview(marker))
            count(HEADER + len(marker))

    def _begin(self, message: pgoutput.Begin) -> None:
        if self._open is not None:
            raise ProtocolError(f"transaction {message.xid} begins inside transaction {self._open.xid}")
        self._open = Transaction(message.xid, self._folder, in_stream=False)
        self.routes.clear()

    def _commit(self, message: pgoutput.Commit) -> None:
        if self._open is None or self._block is not None:
            raise ProtocolError(f"a commit at {message.commit_lsn} came outside of any transaction")
        transaction, self._open = self._open, None
        self.routes.clear()
        self._take(transaction, Commit(message.end_lsn, message.commit_ts, transaction.xid))

    def _stream_start(self, message: pgoutput.StreamStart) -> None:
        if self._open is not None:
            raise ProtocolError(f"a block of transaction {message.xid} begins inside transaction {self._open.xid}")
        if message.xid not in self._streams:
            if not message.first_segment:
                raise ProtocolError(f"streamed transaction {message.xid} goes on without having begun")
            self._streams[message.xid] = _Stream(Transaction(message.xid, self._folder, in_stream=True))
        self._block = self._streams[message.xid]
        self._open = self._block.transaction
        self.routes.clear()

    def _stream_stop(self, _message: pgoutput.StreamStop) -> None:
        self._block = self._open = None
        self.routes.clear()

    def _stream_commit(self, message: pgoutput.StreamCommit) -> None:
        stream = self._streams.pop(message.xid, None)
        if stream is None:
            raise ProtocolError(f"streamed transaction {message.xid} commits without having begun")
        for oid, told in stream.relations.items():
            newest = self._relations.get(oid)
            if newest is None or newest.number < told.number:
                self._relations[oid] = told
        self._numbers |= {told.oid: told.numbers for _, told in stream.numbers}
        self._take(stream.transaction, Commit(message.end_lsn, message.commit_ts, message.xid))

    def _stream_abort(self, message: pgoutput.StreamAbort) -> None:
        if message.subxid != message.xid:
            if message.xid in self._streams:
                self._abort_part(self._streams[message.xid], message.subxid)
            return
        stream = self._streams.pop(message.xid, None)
        if stream is not None:
            stream.transaction.drop()

    def _abort_part(self, stream: _Stream, subxid: int) -> None:
        stream.transaction.abort(subxid)
        stream.numbers = [(xid, told) for xid, told in stream.numbers if xid != subxid]

    def _take(self, transaction: Transaction, commit: Commit) -> None:
        if commit.end <= self._flushed:
            transaction.drop()
            return
        self.is_caught_up = False
        self.batch.add(transaction, commit)
        self.reached = max(self.reached, commit.end)
