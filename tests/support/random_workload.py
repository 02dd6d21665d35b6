"""Random transactions over tables whose shape changes, too. The same seed gives the same workload.

Large transactions are streamed before they commit (`logical_decoding_work_mem = 64kB`), interleave with small ones and
are rolled back in whole or in part.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import psycopg

from support.pipeline import Pipeline

SCHEMA = (
    "CREATE TABLE plain (id int PRIMARY KEY, a text, big text)",
    "CREATE TABLE swapped (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, a text, big text)",
    "ALTER TABLE swapped REPLICA IDENTITY FULL",
    "CREATE TABLE shelves (id int PRIMARY KEY, a text, big text)",
    *(f"ALTER TABLE {name} ALTER big SET STORAGE EXTERNAL" for name in ("plain", "swapped", "shelves")),
)
# `shelves` has partitions in Iceberg, which updates of `a` and of the key make rows leave.
TABLES = [
    {"name": "public.shelves", "iceberg": {"partition": ["truncate[1](a)", "bucket[3](id)"]}},
    {"name": "public.*"},
]
_KEYS = 6
_MANY = 400  # rows; with `big` well above 64 kB
_ALTERED = ("swapped", "shelves")  # large transactions hold locks on `plain`
_KINDS = ("int", "text", "numeric(10,2)", "timestamptz")
_CONSTANTS = {"int": "7", "text": "'seven'", "numeric(10,2)": "7.5", "timestamptz": "'2026-01-01 00:00+00'"}
_MOST_COLUMNS = 4


class Large:
    """One transaction beside the others: many rows, a part of them rolled back to a savepoint."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._next = 100_000

    def begin(self) -> None:
        if self._connection is None:
            self._connection = psycopg.connect(self._conninfo)
            first, self._next = self._next, self._next + 3 * _MANY
            rows = "INSERT INTO plain SELECT g, 'large', repeat(md5(g::text), 100) FROM generate_series(%s, %s) g"
            self._connection.execute(rows, (first, first + _MANY))
            self._connection.execute("SAVEPOINT half")
            self._connection.execute(rows, (first + _MANY + 1, first + 2 * _MANY))
            self._connection.execute("ROLLBACK TO SAVEPOINT half")
            self._connection.execute("UPDATE plain SET a = 'again', id = id + %s WHERE id = %s", (2 * _MANY, first))

    def end(self, how: str) -> None:
        if self._connection is not None:
            self._connection.execute(how.encode())
            self._connection.close()
            self._connection = None


@dataclass
class Columns:
    """Those that came by a change of shape, with their types, by table."""

    of: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in _ALTERED})

    def copy(self) -> Columns:
        return Columns({table: dict(columns) for table, columns in self.of.items()})


class Workload:
    """`run` plays some steps, each on its own; `said` is what was executed, for the report of a failure."""

    def __init__(self, pipeline: Pipeline, seed: int) -> None:
        self._pipeline = pipeline
        self._rng = random.Random(seed)
        self._large = Large(pipeline.conninfo)
        self._columns = Columns()
        self._names, self._fresh = count(1), count(1_000)
        self._capture = ExitStack()
        self.said: list[str] = []

    def run(self, steps: int) -> None:
        """Ends with everything applied; the caller compares."""
        with self._capturing():
            self._pipeline.bring_forward()
            for _ in range(steps):
                self._step()
            self._large.begin()
            self._large.end("COMMIT")
            self._catch_up()

    def _step(self) -> None:
        steps: list[tuple[int, Callable[[], None]]] = [
            (12, self._transaction),
            (2, self._large.begin),
            (2, lambda: self._large.end(self._rng.choice(["COMMIT", "ROLLBACK"]))),
            (3, self._catch_up),
            (1, self._restart),
        ]
        weights, actions = zip(*steps, strict=True)
        self._rng.choices(actions, weights)[0]()

    @contextmanager
    def _capturing(self) -> Iterator[None]:
        self._capture.enter_context(self._pipeline.capturing())
        try:
            yield
        finally:
            self._capture.close()

    def _restart(self) -> None:
        """Capture and workers begin anew, and something happens meanwhile."""
        self._said("-- restart")
        self._capture.close()
        self._pipeline.begin_anew()
        self._transaction()
        self._capture.enter_context(self._pipeline.capturing())

    def _catch_up(self) -> None:
        """Every table is touched: the stream tells a new shape only with the next row."""
        for table in _ALTERED:
            self._execute(f"INSERT INTO {table} (id) VALUES ({next(self._fresh)})")
        self._said("-- catch up")
        self._pipeline.wait_until_captured()
        self._pipeline.bring_forward()

    def _transaction(self) -> None:
        before, at_savepoint = self._columns.copy(), None
        self._execute("BEGIN")
        for _ in range(self._rng.randint(1, 6)):
            if self._rng.random() < 0.15:
                self._execute("SAVEPOINT s")
                at_savepoint = self._columns.copy()
            elif at_savepoint is not None and self._rng.random() < 0.2:
                self._execute("ROLLBACK TO SAVEPOINT s")
                self._columns = at_savepoint.copy()
            else:
                self._execute(self._statement())
        how = self._rng.choice(["COMMIT", "COMMIT", "ROLLBACK"])
        self._execute(how)
        if how == "ROLLBACK":
            self._columns = before

    def _statement(self) -> str:
        draw = self._rng.random()
        if draw < 0.12:
            return _checked(self._alteration())
        if draw < 0.15:
            return _checked(f"TRUNCATE {self._rng.choice(_ALTERED)}")
        return self._change()

    def _change(self) -> str:
        table = self._rng.choice(("plain", *_ALTERED))
        one, other = self._rng.randint(1, _KEYS), self._rng.randint(1, _KEYS)
        free = f"NOT EXISTS (SELECT FROM {table} WHERE id = {other})"
        changes = [
            f"INSERT INTO {table} (id, a, big) SELECT {other}, {self._word()}, {self._long()} WHERE {free}",
            f"UPDATE {table} SET a = {self._word()} WHERE id = {one}",
            f"UPDATE {table} SET big = {self._long()} WHERE id = {one}",
            f"UPDATE {table} SET id = {other} WHERE id = {one} AND {free}",
            f"UPDATE {table} SET a = {self._word()}, id = {other} WHERE id = {one} AND {free}",
            f"DELETE FROM {table} WHERE id = {one}",
            f"UPDATE swapped SET id = CASE id WHEN {one} THEN {other} ELSE {one} END WHERE id IN ({one}, {other})",
            f"UPDATE swapped SET id = 1 + (id % {_KEYS}) WHERE id <= {_KEYS}",
            *self._changes_of_added(table, one),
        ]
        return self._rng.choice(changes)

    def _changes_of_added(self, table: str, key: int) -> Iterator[str]:
        for name, kind in self._columns.of.get(table, {}).items():
            yield f"UPDATE {table} SET {name} = {_CONSTANTS.get(kind, '4000000000')} WHERE id = {key}"
            yield f"UPDATE {table} SET {name} = NULL, a = {self._word()} WHERE id = {key}"

    def _alteration(self) -> str:
        table = self._rng.choice(_ALTERED)
        columns = self._columns.of[table]
        what = self._rng.choice(["add", "add", "drop", "rename", "widen"])
        if what == "add" and len(columns) < _MOST_COLUMNS:
            return self._add(table, columns)
        if not columns or what == "add":
            return self._change()
        name = self._rng.choice(list(columns))
        kind = columns[name]
        if what == "drop":
            del columns[name]
            return f"ALTER TABLE {table} DROP COLUMN {name}"
        if what == "rename":
            new = f"c{next(self._names)}"
            self._columns.of[table] = {new if old == name else old: value for old, value in columns.items()}
            return f"ALTER TABLE {table} RENAME {name} TO {new}"
        columns[name] = "bigint" if kind == "int" else kind
        return f"ALTER TABLE {table} ALTER {name} TYPE {columns[name]}"

    def _add(self, table: str, columns: dict[str, str]) -> str:
        """Under a new name, or one that a column had before."""
        kind, number = self._rng.choice(_KINDS), next(self._names)
        name = f"c{self._rng.randint(1, number)}"
        if name in columns:
            name = f"c{number}"
        columns[name] = kind
        default = f" DEFAULT {_CONSTANTS[kind]}" if self._rng.random() < 0.5 else ""
        return f"ALTER TABLE {table} ADD COLUMN {name} {kind}{default}"

    def _word(self) -> str:
        return f"'{self._rng.getrandbits(32):x}'"

    def _long(self) -> str:
        return f"repeat('{self._rng.getrandbits(128):032x}', 100)"  # 3,200 bytes: stored out of line

    def _execute(self, statement: str) -> None:
        self._said(statement)
        self._pipeline.execute(statement)

    def _said(self, statement: str) -> None:
        self.said.append(statement)


def _checked(statement: str) -> str:
    """A table whose keys are still to be checked can't be altered."""
    return f"SET CONSTRAINTS ALL IMMEDIATE; {statement}; SET CONSTRAINTS ALL DEFERRED"
