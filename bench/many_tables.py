"""Many tables that change all the time: how fresh each of them is, and whether memory grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench_run import BenchRun
from capture import wait_for_streaming
from end_to_end import require_equal
from pipeline import READY, Pipeline, Standing
from processes import Role
from progress import step, wait_until
from report import Figure
from source import SUMMED, SourceDatabase
from steady_load import SteadyLoad

GOALS_S = {50: 30.0, 200: 120.0}  # by number of tables
GOAL_GROWTH = 1.05  # what a garbage collector may differ by from one minute to the next
_ROWS = 1000  # of each table at the beginning
_WARM_ROUNDS = 3  # the first cycles of a worker are slow, and what waited for them makes the next ones long
_SAMPLE_S = 1.0
_POLL_S = 0.5  # here nothing is timed by waiting, and asking about many tables takes longer
_HERE = Path(__file__).parent
_DEFINITIONS = _HERE / "many_tables.sql"


@dataclass(frozen=True)
class Sample:
    second: float  # since the first of them
    ages: list[float]  # of each table
    capture_mb: float
    worker_mb: float


@dataclass(frozen=True)
class Observed:
    copied_s: float  # until all tables were live
    warm_s: float  # from the beginning of the load until it was measured
    transactions: float  # per second
    caught_up_s: float  # from the end of the load until all of it was visible
    samples: list[Sample]


def measure_many_tables(run: BenchRun, numbers: Sequence[int], minutes: float) -> list[Figure]:
    return [figure for number in numbers for figure in _measure(run, number, minutes)]


def _measure(run: BenchRun, number: int, minutes: float) -> list[Figure]:
    print(f"{number} tables that change all the time")
    tables = [f"many_{index:03}" for index in range(1, number + 1)]
    name = f"many_{number}"
    with run.server.database(name) as source:
        _create(source, tables)
        pipeline = Pipeline(name, source, run.folder, {})
        pipeline.configure(tables)
        observed = _observe(pipeline, tables, minutes * 60)
        _save(observed.samples, _HERE / "out" / f"{name}.tsv")
        require_equal(pipeline, tables, SUMMED)
    return _figures(f"{number} tables", observed, GOALS_S.get(number))


def _create(source: SourceDatabase, tables: Sequence[str]) -> None:
    source.define(_DEFINITIONS)
    with step(f"creating the tables with {_ROWS:,} rows each"):
        source.conn.execute("CALL bench.create_many(%s, %s)", [list(tables), _ROWS])
        source.settle()


def _observe(pipeline: Pipeline, tables: Sequence[str], seconds: float) -> Observed:
    load = SteadyLoad(pipeline.source, tables, _ROWS)
    with pipeline.capture() as capture, pipeline.standing() as standing:
        wait_for_streaming(capture)
        with pipeline.worker() as worker:
            wait_until(lambda: worker.said(READY), "the worker", timeout_s=300)
            watch = _Watch(pipeline, standing, capture, worker, load)
            copied_s = watch.until("all first copies", lambda: len(standing.live_tables()) == len(tables))
            with load.running():
                warm_s = sum(watch.one_round() for _ in range(_WARM_ROUNDS))
                made = load.made
                with step(f"changing them for {seconds / 60:g} minutes"):
                    samples = watch.sampled(seconds)
                made = load.made - made
            caught_up_s = watch.until("the last changes", lambda: not any(watch.ages()))
    return Observed(copied_s, warm_s, made / seconds, caught_up_s, samples)


@dataclass(frozen=True)
class _Watch:
    pipeline: Pipeline
    standing: Standing
    capture: Role
    worker: Role
    load: SteadyLoad

    def until(self, what: str, reached: Callable[[], bool]) -> float:
        """Seconds it took."""

        def is_reached() -> bool:
            self._require_running()
            return reached()

        began = time.monotonic()
        with step(what):
            wait_until(is_reached, what, poll_s=_POLL_S)
        return time.monotonic() - began

    def sampled(self, seconds: float) -> list[Sample]:
        began, samples = time.monotonic(), []
        while (second := time.monotonic() - began) < seconds:
            self._require_running()
            samples.append(Sample(second, self.ages(), self.capture.resident_mb(), self.worker.resident_mb()))
            time.sleep(_SAMPLE_S)
        self.standing.live_tables()  # raises if one is parked
        return samples

    def ages(self) -> list[float]:
        prefix = f"{self.pipeline.name}."
        return self.load.ages({key.removeprefix(prefix): at for key, at in self.standing.positions().items()})

    def one_round(self) -> float:
        """Until changes of each table have become visible."""

        def is_over() -> bool:
            self.ages()
            return self.load.is_round_over()

        self.load.begin_round()
        return self.until("a round of all tables to warm up", is_over)

    def _require_running(self) -> None:
        self.capture.require_running()
        self.worker.require_running()


def _save(samples: Sequence[Sample], file: Path) -> None:
    """For whoever wants to see how it went."""
    file.parent.mkdir(exist_ok=True)
    lines = [
        f"{sample.second:.0f}\t{max(sample.ages):.1f}\t{sample.capture_mb:.0f}\t{sample.worker_mb:.0f}"
        for sample in samples
    ]
    file.write_text("\n".join(["second\toldest_s\tcapture_mb\tworker_mb", *lines, ""]))


def _figures(scenario: str, found: Observed, goal_s: float | None) -> list[Figure]:
    ages = sorted(age for sample in found.samples for age in sample.ages)
    oldest = "oldest change not yet visible"
    return [
        Figure(scenario, "load", found.transactions, "transactions/s"),
        Figure(scenario, f"{oldest}, p50", ages[len(ages) // 2], "s"),
        Figure(scenario, f"{oldest}, p99", ages[int(len(ages) * 0.99)], "s", at_most=goal_s),
        Figure(scenario, f"{oldest}, of all tables and moments", ages[-1], "s", at_most=goal_s),
        *_memory(scenario, "capture", [sample.capture_mb for sample in found.samples]),
        *_memory(scenario, "the worker, JVM included", [sample.worker_mb for sample in found.samples]),
        Figure(scenario, "first copies of all tables", found.copied_s, "s"),
        Figure(scenario, f"{_WARM_ROUNDS} rounds to warm up, not in it", found.warm_s, "s"),
        Figure(scenario, "all visible after the end of the load", found.caught_up_s, "s"),
    ]


def _memory(scenario: str, whose: str, sizes: list[float]) -> list[Figure]:
    """The first third is left out: there a process gets what it will keep."""
    third = len(sizes) // 3
    before, after = median(sizes[third : 2 * third]), median(sizes[2 * third :])
    return [
        Figure(scenario, f"memory of {whose}", after, "MB"),
        Figure(scenario, f"memory of {whose}, last third to second third", after / before, at_most=GOAL_GROWTH),
    ]
