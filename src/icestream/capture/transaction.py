"""One transaction of the source, from its first row to its commit."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from icestream.capture.rows import Rows, Xids
from icestream.capture.spill import Block, Spill
from icestream.model.position import Lsn
from icestream.model.table import Relation

SEGMENT_BYTES: Final = 8 * 1024 * 1024  # what is decoded at a time


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit says of all rows of its transaction."""

    end: Lsn
    ts: int  # microseconds since 1970
    xid: int


class Transaction:
    """Rows that are not committed yet. What would not fit in memory is in its spill, in order.

    A streamed transaction comes in blocks, between those of others; parts of it may be aborted on the way.
    """

    def __init__(self, xid: int, folder: Path, *, in_stream: bool) -> None:
        self.xid = xid
        self.in_stream = in_stream
        self.spilled_rows = 0
        self._folder = folder
        self._parts: list[Rows] = []
        self._newest: dict[int, int] = {}  # the part that takes a relation's next row
        self._aborted = array("I")
        self._spill: Spill | None = None

    @property
    def is_spilled(self) -> bool:
        return self._spill is not None

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return sum(len(rows.data) for rows in self._parts)

    def rows_of(self, table: str, relation: Relation) -> Rows:
        """Where the next row of the relation goes: a new part once its shape has changed."""
        index = self._newest.get(relation.oid)
        if index is None or self._parts[index].relation is not relation:
            index = len(self._parts)
            self._newest[relation.oid] = index
            self._parts.append(Rows(table, relation, in_stream=self.in_stream))
        return self._parts[index]

    def abort(self, subxid: int) -> None:
        """The rows of this subtransaction do not count."""
        self._aborted.append(subxid)

    def move_to_disk(self) -> None:
        """Frees the memory; the transaction goes on as before. Raises StorageError, after which it is of no use."""
        if self._spill is None:
            self._spill = Spill(self._folder)
        for index, rows in enumerate(self._parts):
            if len(rows):
                self._spill.write(index, rows)
                self.spilled_rows += len(rows)
                rows.clear()
        self._spill.flush()

    def in_memory(self) -> Iterator[Rows]:
        """The committed rows of a transaction that never went to disk."""
        return _kept(self._parts, self._aborted_xids())

    def on_disk(self) -> Iterator[Rows]:
        """The committed rows of a spilled transaction, in pieces that fit in memory; those of a table are in order."""
        aborted = self._aborted_xids()
        for rows in self._pieces():
            yield from _kept((rows,), aborted)

    def drop(self) -> None:
        """Forgets everything, also on disk. May be repeated."""
        if self._spill is not None:
            self._spill.close()
        self._parts.clear()
        self._newest.clear()

    def _pieces(self) -> Iterator[Rows]:
        assert self._spill is not None
        held: dict[int, Rows] = {}
        size = 0
        for block in self._spill.blocks():
            before = held.get(self._parts[block.part].relation.oid)
            if before is not None and before.relation is not self._parts[block.part].relation:
                yield held.pop(before.relation.oid)
            self._hold(held, block)
            size += len(block.data)
            if size >= SEGMENT_BYTES:
                yield from held.values()
                held, size = {}, 0
        yield from held.values()

    def _hold(self, held: dict[int, Rows], block: Block) -> None:
        part = self._parts[block.part]
        rows = held.get(part.relation.oid)
        if rows is None:
            rows = held[part.relation.oid] = Rows(part.table, part.relation, in_stream=self.in_stream)
        rows.extend(block.data, block.sizes)

    def _aborted_xids(self) -> Xids:
        return np.unique(np.frombuffer(self._aborted, np.uint32))


def _kept(parts: Iterable[Rows], aborted: Xids) -> Iterator[Rows]:
    for rows in parts:
        kept = rows.without(aborted)
        if len(kept):
            yield kept
