"""Running cases: each group of them in one pipeline, side by side, from the first copy to the last batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from icestream.errors import CopySnapshotGone, LakeError, Retry, SourceReshaped, TableParked
from icestream.lake.session import Lake
from icestream.model.ids import new_id
from icestream.model.table import TableState
from icestream.state.tables import TableRow
from support.cases import Case
from support.pipeline import Pipeline
from support.postgres import PostgresServer
from support.postgres_tools import psql

_THREADS = 3  # most of the time of a small cycle is waiting


@dataclass(frozen=True)
class Variant:
    """One way to run cases: against which server, and with which settings beyond those of a case."""

    name: str
    server: int = 18
    settings: Mapping[str, Any] = field(default_factory=dict)  # by their paths, with dots

    def schema(self, case: Case) -> str:
        """The case's schema in the source, and its namespace in the lake, which all variants share."""
        return f"{case.name}_{self.name}"


@dataclass(frozen=True)
class TableEnd:
    """Where a table stood when its case was over."""

    state: TableState
    reason: str


class CaseGroup:
    """Cases that share a pipeline. A case whose SQL fails is left behind, and the others go on."""

    def __init__(self, variant: Variant, cases: Iterable[Case], pipeline: Pipeline) -> None:
        self._variant = variant
        self._cases = list(cases)
        self._pipeline = pipeline
        self._failures: dict[str, AssertionError] = {}
        self._ends: dict[str, TableEnd] = {}

    def run(self) -> None:
        for case in self._cases:
            self._play(case, f'CREATE SCHEMA "{self._variant.schema(case)}";\n', case.setup)
        with self._pipeline.capturing():
            self._bring_forward()
            if not self._goes_down:
                for _ in self._rounds():
                    self._catch_up()
        for _ in self._rounds() if self._goes_down else ():
            with self._pipeline.capturing():
                self._catch_up()
        self._ends = {row.key: TableEnd(row.state, row.reason or "") for row in self._pipeline.tables.all()}

    def end_of(self, case: Case, table: str) -> TableEnd:
        """Raises what stopped the case."""
        if case.name in self._failures:
            raise self._failures[case.name]
        return self._ends[f"{self._variant.schema(case)}.{table}"]

    @property
    def _goes_down(self) -> bool:
        return any(case.goes_down for case in self._cases)

    def _rounds(self) -> Iterator[None]:
        """The first batch of all cases is played, then the second, …"""
        for number in range(max(len(case.batches) for case in self._cases)):
            for case in self._cases:
                self._play(case, *case.batches[number : number + 1])
            yield

    def _play(self, case: Case, *parts: str) -> None:
        if not parts or case.name in self._failures:
            return
        path = f'SET search_path = "{self._variant.schema(case)}", public;\n'
        try:
            psql(self._pipeline.conninfo, "".join([*parts[:-1], path, parts[-1]]))
        except AssertionError as err:
            self._failures[case.name] = err

    def _catch_up(self) -> None:
        self._pipeline.wait_until_captured()
        self._bring_forward()

    def _bring_forward(self) -> None:
        with ThreadPoolExecutor(_THREADS) as pool:
            while rows := self._pipeline.rows_with_work():
                list(pool.map(self._work, rows))

    def _work(self, row: TableRow) -> None:
        """As a worker does it: what can't go on is parked, what another snapshot helps is offered one."""
        try:
            self._pipeline.advance(row)
        except (TableParked, LakeError) as err:
            if err.retry is not Retry.NEVER:
                raise
            self._pipeline.tables.park(row.key, str(err), err.hint, seen=row, is_resumable=True)
        except (CopySnapshotGone, SourceReshaped):
            return


class CaseRuns:
    """Runs a group when the first of its cases is asked for; each once."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self._lake = lake
        self._folder = folder
        self._groups: dict[tuple[str, str], CaseGroup | BaseException] = {}

    def group_of(self, case: Case, variant: Variant, wanted: Iterable[Case], server: PostgresServer) -> CaseGroup:
        """`wanted`: all cases that will be asked for in this variant."""
        group = case.group(variant.settings)
        if (variant.name, group) not in self._groups:
            cases = [other for other in wanted if other.group(variant.settings) == group]
            self._groups[variant.name, group] = self._run(variant, cases, server)
        found = self._groups[variant.name, group]
        if isinstance(found, BaseException):
            raise found
        return found

    def _run(self, variant: Variant, cases: list[Case], server: PostgresServer) -> CaseGroup | BaseException:
        name = "cases_" + new_id().replace("-", "")
        conninfo, folder = server.create_database(), self._folder / name
        folder.mkdir()
        tables = [entry for case in cases for entry in case.tables(variant.schema(case))]
        settings = {**cases[0].settings(variant.settings), "sink.namespace": ""}  # each schema is one
        pipeline = Pipeline(self._lake, conninfo, folder, namespace=name, tables=tables, **settings)
        group = CaseGroup(variant, cases, pipeline)
        try:
            group.run()
        except Exception as err:  # noqa: BLE001 - raised again by every case of the group
            return err
        finally:
            pipeline.close()
            server.drop_database(conninfo)
        return group
