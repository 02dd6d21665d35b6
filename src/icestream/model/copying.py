"""A first copy in parts: ranges of pages, runs of them that a task writes, and the files they are written to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import msgspec

_LONGEST_RUN = 8  # so much is lost with a worker at most, per task


class WrittenFile(msgspec.Struct, frozen=True):
    """A data file as Iceberg will name it."""

    path: str
    size: int
    records: int


@dataclass(frozen=True)
class CopyRange:
    """Pages of one relation, the end exclusive; without an end, all that are left."""

    number: int
    oid: int  # of the table, or of one of its partitions
    start: int
    end: int | None
    pages: int  # as many as there were when the copy was planned
    files: tuple[WrittenFile, ...] | None = None  # None: not written yet


@dataclass(frozen=True)
class RangeRun:
    """Ranges that follow each other in one relation: read and written together, in one go."""

    ranges: tuple[CopyRange, ...]

    @property
    def numbers(self) -> range:
        return range(self.ranges[0].number, self.ranges[-1].number + 1)

    @property
    def pages(self) -> CopyRange:
        """As one range."""
        first, last = self.ranges[0], self.ranges[-1]
        return replace(first, end=last.end, pages=sum(part.pages for part in self.ranges))


def next_run(ranges: Sequence[CopyRange], *, at_once: int) -> RangeRun:
    """The run that the given ranges begin with: long while much is left, so that few runs are needed, and short
    towards the end, so that all who work `at_once` end together."""
    longest = max(1, min(_LONGEST_RUN, len(ranges) // at_once))
    first = ranges[0]
    follow = takewhile(
        lambda pair: pair[1].oid == first.oid and pair[1].number == first.number + pair[0], enumerate(ranges[:longest])
    )
    return RangeRun(tuple(part for _, part in follow))
