"""The table of `write_mode: append`: every change is a row, with what happened, when, and what was there before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from icestream.model.change import LSN, OP, TS, UNCHANGED, XID
from icestream.model.columns import LakeColumn
from icestream.model.types import STRING, Kind, TargetType

OFFSET: Final = "_offset"  # place in the log: with `_lsn` it orders all rows
KEY: Final = "_key_cols"  # the columns by which the stream names an old row; none: by all of them, or not at all
BEFORE: Final = "_before"  # the old row as far as the stream tells it, a struct of the row's columns

READ: Final = "R"  # the operation of a row that a copy has read; the others are those of the log

# A copy belongs before every change of its log, and what marks its beginning before the copy.
COPIED_OFFSET: Final = -1
BEGINNING_OFFSET: Final = -2

# In the order of the table, where `_before` and the row's own columns follow.
COLUMNS: Final = (
    LakeColumn(OP, STRING),
    LakeColumn(LSN, TargetType(Kind.LONG)),
    LakeColumn(OFFSET, TargetType(Kind.LONG)),
    LakeColumn(TS, TargetType(Kind.TIMESTAMPTZ)),
    LakeColumn(XID, TargetType(Kind.LONG)),
    LakeColumn(KEY, TargetType(Kind.LIST, element=STRING)),
    LakeColumn(UNCHANGED, TargetType(Kind.LIST, element=STRING)),
)
NAMES: Final = frozenset((*(column.name for column in COLUMNS), BEFORE))


@dataclass(frozen=True)
class CopyMark:
    """What the rows of a copy have in a changelog beside their own columns."""

    position: int
    at: datetime  # when they were read
    key: tuple[str, ...]

    columns = tuple(column for column in COLUMNS if column.name in (OP, LSN, OFFSET, TS, KEY))

    def values(self) -> dict[str, object]:
        """In the order of the columns."""
        return {OP: READ, LSN: self.position, OFFSET: COPIED_OFFSET, TS: self.at, KEY: list(self.key)}
