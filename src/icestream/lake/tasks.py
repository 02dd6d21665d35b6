"""Functions that run as Spark tasks, one task each, many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

from pyspark.sql import SparkSession

from icestream.errors import LakeUnavailable
from icestream.lake.java import JAVA_ERRORS, error_message

T = TypeVar("T")
R = TypeVar("R")

# Jobs of different pools share the cores evenly (see `spark.scheduler.mode`), those of one pool go by age.
_POOL = "spark.scheduler.pool"
_COPY_POOL, _DEFAULT_POOL = "copy", "default"


@contextmanager
def copying_beside_cycles(session: SparkSession) -> Iterator[None]:
    """What this thread asks Spark for in the block does not hold up cycles for longer than its share."""
    context = session.sparkContext
    context.setLocalProperty(_POOL, _COPY_POOL)
    try:
        yield
    finally:
        context.setLocalProperty(_POOL, _DEFAULT_POOL)


class Tasks:
    """Runs at most `concurrency` tasks at once, whoever asks for them. Safe to use from many threads.

    A job for each task, so that the driver hears of each one as soon as it has ended.
    """

    def __init__(self, spark: SparkSession, concurrency: int | None = None) -> None:
        self._spark = spark
        self._size = concurrency or spark.sparkContext.defaultParallelism
        self._threads = ThreadPoolExecutor(self._size, thread_name_prefix="task")

    @property
    def at_once(self) -> int:
        """How many really run at the same time."""
        return min(self._size, self._spark.sparkContext.defaultParallelism)

    def finished(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[tuple[T, R]]:
        """Each item with its result, in the order in which they end. Items are taken when there is room for them.

        Raises LakeUnavailable when a task fails in a way that `function` does not foresee.
        """
        waiting = iter(items)
        running: dict[Future[R], T] = {}

        def start(most: int) -> None:
            for item in islice(waiting, most):
                running[self._threads.submit(self._run, function, item)] = item

        try:
            start(self._size)  # and never more: others may want a turn, too
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), future.result()
                    start(1)
        finally:
            for future in running:
                future.cancel()
            wait(running)

    def close(self) -> None:
        self._threads.shutdown()

    def _run(self, function: Callable[[T], R], item: T) -> R:
        try:
            with copying_beside_cycles(self._spark):
                # The item travels with the function: as data of the job it would be put into a file on the way.
                results: list[R] = self._spark.sparkContext.parallelize([0], 1).map(lambda _: function(item)).collect()
        except JAVA_ERRORS as err:
            raise LakeUnavailable(f"a Spark task failed: {error_message(err)}") from err
        return results[0]
