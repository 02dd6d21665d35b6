"""One Icestream pipeline of the bench: its settings file, its roles, and where the state says it stands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from icestream.config import load
from icestream.config.settings import Settings
from icestream.model.position import ZERO, Lsn
from icestream.model.table import TableState
from icestream.state.cursors import Cursors
from icestream.state.database import Database
from icestream.state.log_entries import LogEntries
from icestream.state.log_index import LogIndex
from icestream.state.tables import TableRow, Tables
from processes import Role
from progress import wait_until
from source import ORDERS, SIDE, SourceDatabase, checksum_query

READY = "worker is ready"
STREAMING = "streaming"


class Pipeline:
    """Its name is also that of its slot, its publication and its namespace."""

    def __init__(self, name: str, source: SourceDatabase, folder: Path, sink: Mapping[str, str]) -> None:
        self.name = name
        self.source = source
        self._folder = folder / name
        self._folder.mkdir()
        self._sink = sink
        self._file = self._folder / "icestream.yaml"

    def configure(self, tables: Sequence[str] = (ORDERS, SIDE), *, skip_copy: bool = False) -> None:
        """Writes the settings; a role reads them when it starts."""
        address = self.source.address
        settings = {
            "tables": [{"name": f"bench.{table}", "skip_snapshot": skip_copy} for table in tables],
            "source": {
                "postgres": {
                    "host": address.host,
                    "port": address.port,
                    "database": self.source.name,
                    "user": address.user,
                    "password_file": str(address.password_file),
                },
                "logical": {"slot_name": self.name, "publication_name": self.name},
            },
            "sink": {"warehouse": str(self._folder / "warehouse"), "namespace": self.name, **self._sink},
        }
        self._file.write_text(yaml.safe_dump(settings))

    def capture(self) -> Role:
        return Role(["stream-only", "--config", str(self._file)], self._folder / "capture.log")

    def worker(self) -> Role:
        arguments = ["materializer-only", "--worker-id", "bench", "--config", str(self._file)]
        return Role(arguments, self._folder / "worker.log")

    @contextmanager
    def standing(self) -> Iterator[Standing]:
        settings = load(self._file, {}, {}).settings
        db = Database(settings.state_conninfo(), settings.state.coordinator_schema)
        try:
            yield Standing(settings, db)
        finally:
            db.close()

    def checksums(self, tables: Sequence[str], summed: Sequence[str]) -> list[str]:
        """What `SourceDatabase.checksums` says, of the Iceberg tables."""
        query = checksum_query(self.name, tables, summed)
        command = [sys.executable, "-m", "icestream", "sql", query, "--format", "json", "--config", str(self._file)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        rows = json.loads(output, parse_float=str)
        return [" ".join(str(value) for value in row.values()) for row in rows]

    def key(self, table: str) -> str:
        return f"{self.name}.{table}"


class Standing:
    """How far a pipeline has come, from the state database. `key` is namespace.table."""

    def __init__(self, settings: Settings, db: Database) -> None:
        self._index = LogIndex(db, settings.pipeline)
        self._entries = LogEntries(db, settings.pipeline)
        self._tables = Tables(db, settings.pipeline)
        self._cursors = Cursors(db, settings.pipeline, settings.state.group)

    def flushed(self) -> Lsn:
        found = self._index.flushed()
        return ZERO if found is None else found.position

    def staged_changes(self, key: str) -> int:
        return self._entries.extent(key).next_offset

    def is_visible(self, key: str, position: Lsn) -> bool:
        """Whether the Iceberg table has what was committed after `position` and before the cursor."""
        stored = self._cursors.load(key)
        return stored is not None and stored.cursor.position > position

    def positions(self) -> dict[str, int]:
        """By table: the Iceberg table has what was committed before."""
        return {key: stored.cursor.position for key, stored in self._cursors.all().items()}

    def state(self, key: str) -> TableState | None:
        row = self._tables.get(key)
        return None if row is None else _not_parked(row)

    def live_tables(self) -> set[str]:
        return {row.key for row in self._tables.all() if _not_parked(row) is TableState.LIVE}


def _not_parked(row: TableRow) -> TableState:
    if row.state is TableState.PARKED:
        raise RuntimeError(f"{row.key} is parked: {row.reason}")
    return row.state


def wait_for_state(role: Role, standing: Standing, key: str, state: TableState) -> None:
    def reached() -> bool:
        role.require_running()
        return standing.state(key) is state

    wait_until(reached, f"{key} to be {state.value}")


def wait_until_visible(roles: Sequence[Role], standing: Standing, key: str, position: Lsn) -> None:
    def reached() -> bool:
        for role in roles:
            role.require_running()
        return standing.is_visible(key, position)

    wait_until(reached, f"{key} to pass {position}")


def wait_until_flushed(capture: Role, standing: Standing, position: Lsn) -> None:
    def reached() -> bool:
        capture.require_running()
        return standing.flushed() > position

    wait_until(reached, f"the log to pass {position}")


def warm_up(pipeline: Pipeline, standing: Standing, roles: Sequence[Role], *, cycles: int, rows: int = 1000) -> None:
    """Batches of all kinds of changes through the side table, one after the other."""
    for number in range(cycles):
        position = pipeline.source.touch_side(first=number * rows + 1, rows=rows)
        wait_until_visible(roles, standing, pipeline.key(SIDE), position)
