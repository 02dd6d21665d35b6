"""Cases as data: SQL in, Iceberg tables out. A case is a folder in `tests/e2e/cases`:

setup.sql       what is there before the first copy; `-- POSTGRES 15` in its first line: not for older servers
settings.yaml   settings of its own, if any, by their paths; its `tables` are by name, without the schema
steps.sql       what happens afterwards; `-- WAIT` lines cut it into batches that are applied one after the other.
                Batches that `-- DOWN` lines cut are run while nobody captures
expected.tsv    the tables at the end: `# table`, a line of column names, rows in any order; \\N is NULL, a long text
                is shown by its beginning and its length. `# table | state | words` expects that state, and a reason
                with these words

Every case has a schema of its own, so that many share one pipeline: those that ask for the same settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).parent.parent / "e2e" / "cases"

_CUT = re.compile(r"^-- (?:WAIT|DOWN)\n", re.MULTILINE)
_OLDEST = re.compile(r"-- POSTGRES (\d+)\n")

Rows = list[tuple[str, ...]]


@dataclass(frozen=True)
class Expected:
    """What a table is like at the end; `rows` begin with the names of the columns, and None are not looked at."""

    table: str
    state: str
    words: str
    rows: Rows | None


@dataclass(frozen=True)
class Case:
    folder: Path

    @classmethod
    def named(cls, name: str) -> Case:
        return cls(CASES / name)

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def setup(self) -> str:
        return (self.folder / "setup.sql").read_text()

    @cached_property
    def batches(self) -> list[str]:
        return _CUT.split(self._steps)

    @property
    def oldest_server(self) -> int:
        found = _OLDEST.match(self.setup)
        return int(found[1]) if found else 0

    def group(self, settings: Mapping[str, Any]) -> str:
        """Cases of one group share a pipeline; `settings` are those of all cases, and yield to the case's own."""
        return json.dumps([self.goes_down, self.settings(settings)], sort_keys=True)

    @property
    def goes_down(self) -> bool:
        return "-- DOWN\n" in self._steps

    def settings(self, others: Mapping[str, Any]) -> dict[str, Any]:
        """Those that are not about its tables."""
        return {**others, **{key: value for key, value in self._own.items() if key != "tables"}}

    def tables(self, schema: str) -> list[dict[str, Any]]:
        """Entries of `tables`: all of its schema, and those with settings of their own."""
        own = {"*": {}, **self._own.get("tables", {})}
        return [{**_within(schema, entry), "name": f"{schema}.{name}"} for name, entry in own.items()]

    def expected(self) -> list[Expected]:
        parts = re.split(r"^# ", (self.folder / "expected.tsv").read_text(), flags=re.MULTILINE)
        return [_expected(part) for part in parts if part]

    @cached_property
    def _steps(self) -> str:
        return (self.folder / "steps.sql").read_text()

    @cached_property
    def _own(self) -> dict[str, Any]:
        path = self.folder / "settings.yaml"
        return dict(yaml.safe_load(path.read_text())) if path.exists() else {}


def all_cases() -> list[str]:
    return sorted(folder.name for folder in CASES.iterdir())


def in_order(rows: Rows) -> Rows:
    """The names of the columns first."""
    return [*rows[:1], *sorted(rows[1:])]


def as_tsv(rows: Rows) -> str:
    return "\n".join("\t".join(row) for row in rows)


def _within(schema: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: [f"{schema}.{name}" for name in value] if key == "exclude" else value for key, value in entry.items()}


def _expected(part: str) -> Expected:
    head, *lines = part.splitlines()
    table, state, words = (*(word.strip() for word in head.split("|")), "live", "")[:3]
    rows = [tuple(line.split("\t")) for line in lines if line]
    return Expected(table, state, "" if words == "live" else words, in_order(rows) if rows else None)
