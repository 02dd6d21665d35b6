"""Raw row messages, kept as PostgreSQL sent them until a flush turns them into columns."""

from __future__ import annotations

from array import array
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from icestream.model.table import Relation
from icestream.sources.postgres.stream import HEADER

Xids: TypeAlias = npt.NDArray[np.uint32]

_XID: Final = slice(1, 5)  # where a message of a streamed block names its subtransaction


class Rows:
    """Row messages of one relation version, in order, back to back in one buffer.

    `data` and `sizes` are filled by the stream itself and are never replaced by other objects. A size counts the
    header that is not stored.
    """

    __slots__ = ("data", "in_stream", "relation", "sizes", "table")

    def __init__(self, table: str, relation: Relation, *, in_stream: bool) -> None:
        self.table = table
        self.relation = relation
        self.in_stream = in_stream  # the messages carry the xid of their subtransaction
        self.data = bytearray()
        self.sizes = array("I")

    def __len__(self) -> int:
        return len(self.sizes)

    def add(self, message: bytes | memoryview) -> None:
        """A message without its header."""
        self.data.extend(message)
        self.sizes.append(HEADER + len(message))

    def extend(self, data: bytes | bytearray, sizes: array[int]) -> None:
        self.data.extend(data)
        self.sizes.extend(sizes)

    def clear(self) -> None:
        self.data.clear()
        del self.sizes[:]

    def message_sizes(self) -> npt.NDArray[np.int64]:
        """The size of each message as it lies in `data`."""
        return np.frombuffer(self.sizes, np.uint32).astype(np.int64) - HEADER

    def without(self, aborted: Xids) -> Rows:
        """The rows that belong to none of these subtransactions (sorted); only for rows of a streamed transaction."""
        if not len(aborted) or not len(self):
            return self
        sizes = self.message_sizes()
        kept = ~_contains(aborted, self._xids(sizes))
        if kept.all():
            return self
        rows = Rows(self.table, self.relation, in_stream=True)
        rows.data += np.frombuffer(self.data, np.uint8)[np.repeat(kept, sizes)].tobytes()
        rows.sizes.frombytes(np.frombuffer(self.sizes, np.uint32)[kept].tobytes())
        return rows

    def _xids(self, sizes: npt.NDArray[np.int64]) -> Xids:
        starts = np.cumsum(sizes) - sizes
        octets = np.frombuffer(self.data, np.uint8)
        named = octets[starts[:, None] + np.arange(_XID.start, _XID.stop)]
        return np.ascontiguousarray(named).view(">u4").astype(np.uint32).ravel()


def _contains(some: Xids, xids: Xids) -> npt.NDArray[np.bool_]:
    places = np.minimum(np.searchsorted(some, xids), len(some) - 1)
    return np.asarray(some[places] == xids)
