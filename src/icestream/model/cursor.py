"""How far a table has come in its log."""

from __future__ import annotations

import msgspec

from icestream.model.position import Lsn


class Cursor(msgspec.Struct, frozen=True):
    """Everything below `offset` in the log of `epoch`, and every commit up to `position`, is in the table.

    `copied` is false only between the creation of a table and the publication of its first copy; `copied_at` is the
    position of the snapshot that copy was made at, carried on by every cycle.
    """

    epoch: str
    offset: int
    position: int
    copied: bool = True
    copied_at: int = 0

    def __post_init__(self) -> None:
        # msgspec encodes int itself, no subclass of it.
        msgspec.structs.force_setattr(self, "position", int(self.position))
        msgspec.structs.force_setattr(self, "copied_at", int(self.copied_at))

    @property
    def lsn(self) -> Lsn:
        return Lsn(self.position)

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Cursor:
        return msgspec.json.decode(text, type=cls)
