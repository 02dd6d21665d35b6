"""`icestream sql`: ask the Iceberg tables."""

from __future__ import annotations

import enum
from contextlib import closing
from typing import Annotated

import typer

from icestream.cli.options import Invocation, with_settings


class RowFormat(enum.StrEnum):
    TABLE = "table"
    TSV = "tsv"
    JSON = "json"


@with_settings()
def sql(
    call: Invocation,
    query: Annotated[str, typer.Argument(help="Spark SQL; table names are namespace.table.")],
    row_format: Annotated[RowFormat, typer.Option("--format", help="How to print the rows.")] = RowFormat.TABLE,
) -> None:
    r"""Run Spark SQL over the configured catalog.

    `tsv` has a header line, writes NULL as \\N and escapes tabs and line ends; `json` is one array of objects.
    """
    from icestream.cli import rows
    from icestream.lake.query import run_query
    from icestream.lake.session import LakeOptions, open_lake
    from icestream.runtime.preparation import require_warehouse

    printers = {RowFormat.TABLE: rows.print_table, RowFormat.TSV: rows.print_tsv, RowFormat.JSON: rows.print_json}
    settings = call.load()
    require_warehouse(settings)
    with closing(open_lake(LakeOptions.from_settings(settings))) as lake:
        printers[row_format](run_query(lake, query))
