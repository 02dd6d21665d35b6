"""The end of the demo: every row compared, and what to look at next."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from icestream.config.settings import Settings
from icestream.embedded.shop import TABLES
from icestream.model.table import TableName


@dataclass(frozen=True)
class TableResult:
    name: str
    source_rows: int
    iceberg_rows: int
    different_rows: int

    @property
    def is_equal(self) -> bool:
        return self.different_rows == 0 and self.source_rows == self.iceberg_rows


@dataclass(frozen=True)
class DemoResult:
    tables: tuple[TableResult, ...]
    changes: int
    lag_p50_ms: int | None
    lag_p99_ms: int | None
    warehouse: Path

    @property
    def match(self) -> bool:
        return all(table.is_equal for table in self.tables)

    def as_dict(self) -> dict[str, Any]:
        return {
            "match": self.match,
            "tables": [asdict(table) for table in self.tables],
            "changes": self.changes,
            "lag_ms": {"p50": self.lag_p50_ms, "p99": self.lag_p99_ms},
            "warehouse": str(self.warehouse),
        }


def compare_tables(settings: Settings) -> tuple[TableResult, ...]:
    """Compares all tables of the shop row by row, with Spark. The pipeline has to be at rest."""
    from icestream.lake.session import LakeOptions, open_lake
    from icestream.verify.compare import compare_table

    results = []
    with closing(open_lake(LakeOptions.from_settings(settings))) as lake:
        for name in TABLES:
            source = TableName.parse(name)
            target = settings.target_for(source)
            assert target is not None
            found = compare_table(lake, settings.source.postgres.conninfo(), source, target)
            results.append(TableResult(target.key, found.source_rows, found.target_rows, found.different_rows))
    return tuple(results)


def verdict_lines(result: DemoResult, settings_file: Path, log_file: Path, since: str) -> list[str]:
    equal = sum(table.is_equal for table in result.tables)
    total = len(result.tables)
    lines = [
        "",
        f"All {total} tables are equal, row by row." if result.match else f"Only {equal} of {total} tables are equal.",
        *(_table_line(table) for table in result.tables),
        "",
        f"{result.changes:,} changes applied{_lag(result)}",
        f"tables    {result.warehouse}",
        f"settings  {settings_file}",
        f"log       {log_file}",
    ]
    return [*lines, "", "Look further:", *(f"  {command}" for command in next_commands(settings_file, since))]


def next_commands(settings_file: Path, since: str) -> Sequence[str]:
    """Commands that work when pasted: the tables stay, and need no database to be read."""
    queries = (
        "SELECT status, count(*) AS orders, sum(total) AS total FROM shop.orders GROUP BY status ORDER BY status",
        f"SELECT count(*) AS orders_at_the_start FROM shop.orders TIMESTAMP AS OF '{since}'",  # noqa: S608  to be read
        "SELECT committed_at, operation, snapshot_id FROM shop.orders.snapshots ORDER BY committed_at DESC LIMIT 5",
    )
    prefix = f"{this_command()} sql --config {shlex.quote(_short(settings_file))}"
    return [f'{prefix} "{query}"' for query in queries]


def this_command() -> str:
    """How the user can call us again from here."""
    program = Path(sys.argv[0])
    if program.name != "icestream":
        return f"{shlex.quote(sys.executable)} -m icestream"
    found = shutil.which("icestream")
    if found is not None and Path(found).resolve() == program.resolve():
        return "icestream"
    return shlex.quote(_short(program.absolute()))


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _table_line(table: TableResult) -> str:
    sign = "equal " if table.is_equal else "DIFFER"
    return (
        f"  {sign}  {table.name:<18} {table.source_rows:>7,} rows in Postgres, {table.iceberg_rows:>7,} in Iceberg, "
        f"{table.different_rows:,} different"
    )


def _lag(result: DemoResult) -> str:
    if result.lag_p50_ms is None or result.lag_p99_ms is None:
        return ""
    return f", visible after {result.lag_p50_ms / 1000:.1f} s (p50), {result.lag_p99_ms / 1000:.1f} s (p99)"
