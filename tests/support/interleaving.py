"""Random transactions of several sessions at once, with savepoints, rollbacks and rows large enough to be streamed."""

from __future__ import annotations

import random
from collections.abc import Sequence

import psycopg

TABLES = ("left_table", "right_table")
CREATE = tuple(f"CREATE TABLE {name} (id bigint PRIMARY KEY, v text, pad text)" for name in TABLES)


class Session:
    """One connection that works on keys of its own, so that sessions never wait for each other."""

    def __init__(self, conninfo: str, number: int, rng: random.Random) -> None:
        self._conn = psycopg.connect(conninfo, autocommit=True)
        self._first = number * 1_000_000
        self._rng = rng
        self._next = self._first
        self._savepoints = 0
        self._open = False

    def step(self) -> None:
        if not self._open:
            self._conn.execute("BEGIN")
            self._open, self._savepoints = True, 0
        action = self._rng.choices(
            (self._insert, self._update, self._delete, self._savepoint, self._rollback_to, self._end),
            (8, 4, 2, 3, 2, 1),
        )[0]
        action()

    def finish(self) -> None:
        if self._open:
            self._end()
        self._conn.close()

    def _insert(self) -> None:
        count = self._rng.choice((1, 3, 60))
        self._conn.execute(
            f"INSERT INTO {self._table()} SELECT g, 'v' || g, repeat(md5(g::text), %s)"
            " FROM generate_series(%s::bigint, %s) g",
            [self._rng.choice((1, 30)), self._next, self._next + count - 1],
        )
        self._next += count

    def _update(self) -> None:
        self._conn.execute(
            f"UPDATE {self._table()} SET v = v || '!' WHERE id BETWEEN %s AND %s AND id %% 3 = %s",
            [self._first, self._next, self._rng.randrange(3)],
        )

    def _delete(self) -> None:
        self._conn.execute(
            f"DELETE FROM {self._table()} WHERE id BETWEEN %s AND %s AND id %% 7 = %s",
            [self._first, self._next, self._rng.randrange(7)],
        )

    def _savepoint(self) -> None:
        self._savepoints += 1
        self._conn.execute(f"SAVEPOINT s{self._savepoints}")

    def _rollback_to(self) -> None:
        if self._savepoints:
            self._savepoints = self._rng.randint(1, self._savepoints)
            self._conn.execute(f"ROLLBACK TO SAVEPOINT s{self._savepoints}")

    def _end(self) -> None:
        self._conn.execute(self._rng.choices(("COMMIT", "ROLLBACK"), (3, 1))[0])
        self._open = False

    def _table(self) -> str:
        return self._rng.choice(TABLES)


def interleave(conninfo: str, *, sessions: int, steps: int, seed: int) -> None:
    rng = random.Random(seed)
    running: Sequence[Session] = [Session(conninfo, number + 1, rng) for number in range(sessions)]
    for _ in range(steps):
        rng.choice(running).step()
    for session in running:
        session.finish()
