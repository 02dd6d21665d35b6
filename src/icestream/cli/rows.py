"""How the rows of a query are printed."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from icestream.lake.query import QueryResult

SHOWN_ROWS = 1000  # a table has to be laid out as a whole; tsv and json have no limit
_WIDER_THAN_ANY_LINE = 1_000_000
_TSV_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def print_table(result: QueryResult) -> None:
    from rich.table import Table
    from rich.text import Text

    if not result.columns:
        return
    table = Table()
    for name in result.columns:
        table.add_column(Text(name))
    rows = list(itertools.islice(result.texts(), SHOWN_ROWS + 1))
    for row in rows[:SHOWN_ROWS]:
        table.add_row(*(Text("NULL", style="dim") if value is None else Text(value) for value in row))
    printer = console()
    printer.print(table)
    if len(rows) > SHOWN_ROWS:
        printer.print(f"only the first {SHOWN_ROWS} rows are shown; use --format tsv or json for all")


def print_tsv(result: QueryResult) -> None:
    if not result.columns:
        return
    sys.stdout.write("\t".join(name.translate(_TSV_ESCAPES) for name in result.columns) + "\n")
    for row in result.texts():
        sys.stdout.write("\t".join("\\N" if value is None else value.translate(_TSV_ESCAPES) for value in row) + "\n")


def print_json(result: QueryResult) -> None:
    separator = "[\n"
    for row in result.json_objects() if result.columns else ():
        sys.stdout.write(separator + row)
        separator = ",\n"
    sys.stdout.write("[]\n" if separator == "[\n" else "\n]\n")


def console() -> Console:
    """For tables: as wide as the terminal; where there is none, so wide that nothing is cut."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _WIDER_THAN_ANY_LINE)
