"""`icestream plan`: what the first copy will take."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer

from icestream.cli.amounts import about_size, about_time
from icestream.cli.options import Invocation, with_settings

if TYPE_CHECKING:
    from icestream.runtime.plan import CopyPlan, WalRoom

_HEADINGS = ("table", "mode", "rows", "size", "files", "time")


@with_settings()
def plan(
    call: Invocation,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Estimate the first copy: rows, bytes, files, time, and how much WAL the slot may keep. Changes nothing.

    Rows are what the planner believes, not counted. The time comes from a rate that was measured elsewhere; what your
    network, disks and columns make of it, only a copy shows.
    """
    from icestream.runtime.plan import plan_copy

    found = plan_copy(call.load())
    if as_json:
        typer.echo(json.dumps({**dataclasses.asdict(found), "seconds": found.seconds}))
    else:
        _print(found)


def _print(found: CopyPlan) -> None:
    from rich.table import Table

    from icestream.cli.rows import console

    table = Table(*_HEADINGS, box=None, pad_edge=False)
    for row in found.tables:
        rows = f"{'~' if row.rows_are_guessed else ''}{row.rows:,}"
        table.add_row(
            row.target, row.write_mode, rows, about_size(row.bytes), f"{row.files:,}", about_time(row.seconds)
        )
    console().print(table)
    total = sum(row.bytes for row in found.tables)
    typer.echo(f"\nin all    {about_size(total)} in {len(found.tables):,} tables, {about_time(found.seconds)}")
    typer.echo(
        f"rate      {about_size(found.bytes_per_s)} per second: {found.cores} cores, at a rate per core that was"
        " measured with a table of ten columns; yours may differ"
    )
    if any(row.rows_are_guessed for row in found.tables):
        typer.echo("rows      ~: the table was never analyzed, its rows are guessed from its size")
    typer.echo(f"slot      {_room(found.wal)}")


def _room(wal: WalRoom) -> str:
    """While tables are copied the stream goes on, so WAL piles up only while Icestream stands still."""
    written = (
        "" if wal.written_per_s is None else f"; the source writes {about_size(wal.written_per_s)} of WAL per second"
    )
    if wal.limit_bytes is None:
        return f"no limit but the server's disk (max_slot_wal_keep_size = -1){written}"
    left = "" if wal.left_bytes is None else f", {about_size(wal.left_bytes)} left"
    pause = "" if wal.seconds is None else f": Icestream may stand still for {about_time(wal.seconds)}"
    return f"keeps up to {about_size(wal.limit_bytes)} (max_slot_wal_keep_size){left}{written}{pause}"
