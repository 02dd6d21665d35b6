"""A position in the source: PostgreSQL's log sequence number."""

from __future__ import annotations


class Lsn(int):
    """An LSN; prints as PostgreSQL prints it (`0/16B3748`)."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Lsn:
        high, separator, low = text.partition("/")
        if not separator:
            raise ValueError(f"not an LSN: {text!r}")
        return cls((int(high, 16) << 32) | int(low, 16))

    def __str__(self) -> str:
        return f"{int(self) >> 32:X}/{int(self) & 0xFFFFFFFF:X}"

    def __repr__(self) -> str:
        return f"Lsn({self!s})"


ZERO = Lsn(0)
