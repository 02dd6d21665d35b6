"""Two tables under change, their pipeline, and the question whether their Iceberg tables are equal to them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

from icestream.lake.session import Lake
from icestream.model.table import TableState
from support.pipeline import Pipeline
from support.processes import Processes, write_settings
from support.waiting import wait_for

_SCHEMA = (
    "CREATE TABLE customers (id int PRIMARY KEY, name text, balance numeric(12,2), note text)",
    "ALTER TABLE customers ALTER note SET STORAGE EXTERNAL",
    "CREATE TABLE orders (customer int, line int, at timestamptz DEFAULT now(), PRIMARY KEY (customer, line))",
    "INSERT INTO customers SELECT g, 'n' || g, g / 7.0, repeat('x', 3000) FROM generate_series(1, 40) g",
    "INSERT INTO orders SELECT g, 1 FROM generate_series(1, 40) g",
)
# One round: new rows in both tables, updates with and without a TOAST value, a move, a delete, a value that no
# decimal column can hold, and what never happened.
_ROUND = """
BEGIN;
INSERT INTO customers SELECT {n} + g, 'round', g, repeat('y', 3000) FROM generate_series(0, 9) g;
INSERT INTO orders SELECT {n} + g, line FROM generate_series(0, 9) g, generate_series(1, 2) line;
UPDATE customers SET balance = balance + 1 WHERE id BETWEEN {n} AND {n} + 4;
COMMIT;
UPDATE customers SET id = -id WHERE id = {n} + 5;
UPDATE customers SET balance = 'NaN' WHERE id = {n} + 6;
DELETE FROM orders WHERE customer = {n} + 7;
BEGIN;
INSERT INTO orders VALUES ({n}, 99);
ROLLBACK;
BEGIN;
UPDATE customers SET name = 'moved ' || id WHERE id <= 5;
DELETE FROM customers WHERE id = {n} + 8;
COMMIT;
"""
_STATEMENTS = tuple(line.strip() for line in _ROUND.split(";") if line.strip())


class Shop:
    def __init__(self, pipeline: Pipeline, processes: Processes) -> None:
        self.pipeline = pipeline
        self.processes = processes
        self.namespace = str(pipeline.settings.sink.namespace)
        self._rounds = count(1)
        pipeline.execute(*_SCHEMA)

    @property
    def keys(self) -> list[str]:
        return [f"{self.namespace}.customers", f"{self.namespace}.orders"]

    def go_live(self) -> None:
        """Both tables are copied, by a capture and on a Spark inside of this process, which then stop."""
        with self.pipeline.capturing():
            self.pipeline.bring_forward()

    def bring_forward(self) -> None:
        """A capture is running: applies everything that is committed now, on the Spark inside of this process."""
        self.wait_until_offered()
        self.pipeline.wait_until_captured()
        self.pipeline.bring_forward()

    def change(self) -> None:
        """One round of transactions over both tables, on a connection of its own."""
        with psycopg.connect(self.pipeline.conninfo, autocommit=True) as connection:
            self._change(connection)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Rounds without end while the block runs."""
        stop, failures = threading.Event(), []

        def load() -> None:
            try:
                with psycopg.connect(self.pipeline.conninfo, autocommit=True) as connection:
                    while not stop.wait(0.5):
                        self._change(connection)
            except BaseException as err:  # noqa: BLE001 - raised again by the test's thread
                failures.append(err)

        thread = threading.Thread(target=load, name="load")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        if failures:
            raise failures[0]

    def reconnect(self) -> None:
        """After the server was away."""
        self.pipeline.source.close()
        self.pipeline.source = psycopg.connect(self.pipeline.conninfo, autocommit=True)

    def wait_until_offered(self) -> None:
        """Until every table has a snapshot to be copied at, or is beyond that."""
        wait_for(self._is_offered, "capture to offer a snapshot to both tables")

    def wait_until_applied(self) -> None:
        """Until workers have brought everything that is committed now into the tables."""
        self.pipeline.wait_until_captured()
        wait_for(self._is_applied, "workers to apply everything that was captured")

    def states(self) -> dict[str, TableState]:
        return {row.key: row.state for row in self.pipeline.tables.all()}

    def reasons(self) -> dict[str, str | None]:
        return {row.key: row.reason for row in self.pipeline.tables.all()}

    def assert_mirrored(self) -> None:
        """Both tables are live and equal to their source, row by row, and no key is there twice."""
        assert self.states() == dict.fromkeys(self.keys, TableState.LIVE), self.reasons()
        for key, columns in zip(self.keys, ("id", "customer, line"), strict=True):
            doubled = self.pipeline.query(f"SELECT {columns} FROM {key} GROUP BY {columns} HAVING count(*) > 1")
            assert doubled == [], f"{key} has rows twice"
        self.pipeline.assert_equal()

    def _change(self, connection: psycopg.Connection) -> None:
        start = next(self._rounds) * 1000
        for statement in _STATEMENTS:
            connection.execute(statement.format(n=start).encode())

    def _is_offered(self) -> bool:
        states = self.states()
        return bool(states) and TableState.PENDING not in states.values()

    def _is_applied(self) -> bool:
        if set(self.states().values()) != {TableState.LIVE}:
            return False
        return not self.pipeline.entries.pending(self.pipeline.owner.group)


@pytest.fixture
def shop(
    lake: Lake, database: str, tmp_path: Path, namespace: str, warehouse: Path, processes: Processes
) -> Iterator[Shop]:
    pipeline = Pipeline(lake, database, tmp_path, namespace=namespace)
    write_settings(processes.settings, pipeline, warehouse)
    yield Shop(pipeline, processes)
    processes.clear_away()  # before the connections and the database that they use go
    pipeline.close()
