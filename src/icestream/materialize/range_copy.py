"""All ranges of a first copy: those that are not written yet become Spark tasks, each is noted when it has ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from icestream.errors import CopyStopped
from icestream.lake.data_files import FileLayout
from icestream.lake.tasks import Tasks
from icestream.materialize.letters import note_letters
from icestream.materialize.range_tasks import (
    RangeFailure,
    RunTask,
    UnfitTask,
    WrittenRun,
    find_unfit,
    remove_files,
    write_run,
)
from icestream.materialize.shape import Shape
from icestream.materialize.source_rows import MOST_UNFIT, SourceRows, UnfitPart, UnfitValue
from icestream.model.copying import CopyRange, RangeRun, WrittenFile, next_run
from icestream.model.position import Lsn
from icestream.observe.logs import fields
from icestream.observe.steps import reached
from icestream.state.copy_progress import CopyProgress
from icestream.state.dead_letters import DeadLetter, DeadLetters, unfit_reason

log = logging.getLogger(__name__)

_SAY_EVERY_S = 5.0


@dataclass(frozen=True)
class CopyTools:
    """What the copies of a worker share."""

    tasks: Tasks
    progress: CopyProgress
    letters: DeadLetters
    pages_per_range: int
    target_size: int | None = None
    stopping: Callable[[], bool] = lambda: False
    most_unfit: int = MOST_UNFIT  # values that come to the driver at once


class RangeCopy:
    """The copy of one table at one snapshot. May be given up and taken up again at any time, by any worker."""

    def __init__(
        self, tools: CopyTools, table: str, epoch: str, position: Lsn, source: SourceRows, shape: Shape
    ) -> None:
        self._tools = tools
        self._table = table
        self._epoch = epoch
        self._position = position
        self._source = source
        self._shape = shape
        self._said_at = time.monotonic()

    def plan(self) -> list[CopyRange]:
        """Cut once: another worker, or this one after a restart, finds the same ranges."""
        ranges = self._source.plan(self._tools.pages_per_range)
        planned = self._tools.progress.plan(self._table, self._position, ranges)
        reached("ranges planned")
        return planned

    def write(self, layout: FileLayout, field_ids: dict[str, int]) -> list[WrittenFile]:
        """Every range that is not written yet; gives the files of all. Raises the first failure, once all have ended.

        Raises CopySnapshotGone, SourceReshaped, CopyStopped, or what makes another try useful.
        """
        layout = replace(layout, target_size=self._tools.target_size or layout.target_size)
        ranges = self.plan()
        failures: list[RangeFailure] = []
        written = {pages.number: pages.files for pages in ranges if pages.files is not None}
        name = f"icestream-copy-{self._position:x}"
        runs = self._runs([pages for pages in ranges if pages.files is None])
        most = self._tools.most_unfit
        todo = (RunTask(self._source, run, name, layout, field_ids, most) for run in runs)
        for task, result in self._tools.tasks.finished(write_run, self._until_failure(todo, failures)):
            if isinstance(result, RangeFailure):
                failures.append(result)
            else:
                written |= self._note(task, result)
        if failures:
            raise failures[0].error()
        if len(written) < len(ranges):
            raise CopyStopped(f"{self._table}: the first copy is not complete yet")
        return [file for number in sorted(written) for file in written[number]]

    def note_unfit(self, ranges: Sequence[CopyRange]) -> None:
        """The dead letters of ranges that were read by somebody who does not tell."""
        for pages, part in self._parts([self._unfit_task(pages) for pages in ranges]):
            self._note_letters(pages, part)

    def _runs(self, ranges: Sequence[CopyRange]) -> Iterator[RangeRun]:
        while ranges:
            run = next_run(ranges, at_once=self._tools.tasks.at_once)
            ranges = ranges[len(run.ranges) :]
            yield run

    def _until_failure(self, tasks: Iterator[RunTask], failures: Sequence[RangeFailure]) -> Iterator[RunTask]:
        for task in tasks:
            if failures or self._tools.stopping():
                return
            yield task

    def _note(self, task: RunTask, result: WrittenRun) -> dict[int, tuple[WrittenFile, ...]]:
        """Gives the files that count, by range: another worker may have been faster."""
        reached("range written")
        self._note_letters(task.run.pages, result.unfit)
        numbers = task.run.numbers
        if not self._tools.progress.note(self._table, self._position, numbers, result.files):
            remove_files(result.files, task.layout)
            return self._noted(numbers)
        reached("range noted")
        self._say()
        return {number: result.files if number == numbers[0] else () for number in numbers}

    def _noted(self, numbers: range) -> dict[int, tuple[WrittenFile, ...]]:
        """By somebody else; what that one has not written yet is missing."""
        ranges = self._tools.progress.copies(self._table).get(self._position)
        if ranges is None:
            raise CopyStopped(f"{self._table}: the first copy at {self._position} was given up")
        return {part.number: part.files for part in ranges if part.number in numbers and part.files is not None}

    def _say(self) -> None:
        if time.monotonic() - self._said_at < _SAY_EVERY_S:
            return
        self._said_at = time.monotonic()
        standing = self._tools.progress.standings().get(self._table)
        if standing is not None:
            log.info("copying", extra=fields(table=self._table, **standing.as_fields()))

    def _note_letters(self, pages: CopyRange, first: UnfitPart) -> None:
        letters = map(self._letter, self._unfit(pages, first))
        note_letters(self._tools.letters, letters, self._shape, self._table)

    def _unfit(self, pages: CopyRange, part: UnfitPart) -> Iterator[UnfitValue]:
        """Part by part: the next one is asked for when those before it are stored."""
        yield from part.values
        while part.end is not None:
            ((_, part),) = self._parts([self._unfit_task(pages, part.end)])
            yield from part.values

    def _parts(self, tasks: Sequence[UnfitTask]) -> Iterator[tuple[CopyRange, UnfitPart]]:
        for task, result in self._tools.tasks.finished(find_unfit, tasks):
            if isinstance(result, RangeFailure):
                raise result.error()
            yield task.pages, result

    def _unfit_task(self, pages: CopyRange, behind: UnfitValue | None = None) -> UnfitTask:
        return UnfitTask(self._source, pages, behind, self._tools.most_unfit)

    def _letter(self, found: UnfitValue) -> DeadLetter:
        return DeadLetter(
            table=self._table,
            epoch=self._epoch,
            offset=-1,  # it was in no log
            position=self._position,
            column=found.column,
            key=msgspec.json.decode(found.key),
            value=found.text,
            reason=unfit_reason(found.text),
            place=found.place,
        )
