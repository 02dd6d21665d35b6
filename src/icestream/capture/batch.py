"""Committed transactions on their way into one claim."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from icestream.capture.rows import Rows
from icestream.capture.transaction import SEGMENT_BYTES, Commit, Transaction
from icestream.model.position import Lsn
from icestream.model.table import Relation


class Segment:
    """Rows of one table and one relation version that become one staged file, with the commits they belong to."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._counts = array("q")
        self._ends = array("q")
        self._times = array("q")
        self._xids = array("q")

    @classmethod
    def of(cls, rows: Rows, commit: Commit) -> Segment:
        segment = cls(rows)
        segment._note(len(rows), commit)
        return segment

    def add(self, rows: Rows, commit: Commit) -> None:
        self.rows.extend(rows.data, rows.sizes)
        self._note(len(rows), commit)

    def takes(self, rows: Rows) -> bool:
        """Whether these rows can go into the same file, behind the ones that are here."""
        mine = self.rows
        alike = mine.relation is rows.relation and mine.in_stream == rows.in_stream
        return alike and len(mine.data) < SEGMENT_BYTES

    @property
    def last_end(self) -> int:
        return self._ends[-1]

    @property
    def first_time(self) -> int:
        return self._times[0]

    def ends(self) -> npt.NDArray[np.int64]:
        """For each row the end of its commit."""
        return self._per_row(self._ends)

    def times(self) -> npt.NDArray[np.int64]:
        return self._per_row(self._times)

    def xids(self) -> npt.NDArray[np.int64]:
        return self._per_row(self._xids)

    def _note(self, count: int, commit: Commit) -> None:
        self._counts.append(count)
        self._ends.append(commit.end)
        self._times.append(commit.ts)
        self._xids.append(commit.xid)

    def _per_row(self, values: array[int]) -> npt.NDArray[np.int64]:
        return np.repeat(np.frombuffer(values, np.int64), np.frombuffer(self._counts, np.int64))


class Batch:
    """Whole transactions, in commit order, that are claimed together.

    Filled by the receiver, then emptied once by the flusher.
    """

    def __init__(self) -> None:
        self.position = Lsn(0)  # set when it is cut: every commit up to here is in this batch or an earlier one
        self.newest: Mapping[int, Relation] = {}  # set when it is cut: what was told last of each relation
        self.row_count = 0
        self.size = 0  # bytes in memory
        self._items: list[Segment | tuple[Transaction, Commit]] = []
        self._newest: dict[int, Segment] = {}  # the segment that a relation's next rows may join

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, transaction: Transaction, commit: Commit) -> None:
        if transaction.is_spilled:
            transaction.move_to_disk()
            self.row_count += transaction.spilled_rows
            self._items.append((transaction, commit))
            self._newest.clear()
            return
        for rows in transaction.in_memory():
            self._add_rows(rows, commit)

    def segments(self) -> Iterator[Segment]:
        """In the order of the log, each once; what was given away is no longer held."""
        self._newest.clear()
        self._items.reverse()
        while self._items:
            item = self._items.pop()
            if isinstance(item, Segment):
                yield item
            else:
                yield from _spilled_segments(*item)

    def drop(self) -> None:
        for item in self._items:
            if not isinstance(item, Segment):
                item[0].drop()
        self._items.clear()

    def _add_rows(self, rows: Rows, commit: Commit) -> None:
        self.row_count += len(rows)
        self.size += len(rows.data)
        newest = self._newest.get(rows.relation.oid)
        if newest is not None and newest.takes(rows):
            newest.add(rows, commit)
        else:
            self._newest[rows.relation.oid] = segment = Segment.of(rows, commit)
            self._items.append(segment)


def _spilled_segments(transaction: Transaction, commit: Commit) -> Iterator[Segment]:
    try:
        for rows in transaction.on_disk():
            yield Segment.of(rows, commit)
    finally:
        transaction.drop()
