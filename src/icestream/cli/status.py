"""`icestream status`: where everything stands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from icestream.cli.options import Invocation, with_settings

if TYPE_CHECKING:
    from icestream.runtime.status import CopyStatus, SlotStatus, Status, TableStatus

_HEADINGS = ("table", "mode", "state", "pending", "applied", "lag", "last commit", "dead letters", "failures")


@with_settings()
def status(
    call: Invocation,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show positions, lag, table states and workers, as the coordination state knows them, and whether capture runs.

    Works from any machine that reaches the state database, whether or not anything is running; whether capture runs,
    and how far it is behind, only the source knows.
    """
    from icestream.runtime.opening import opened_state
    from icestream.runtime.status import read_status

    settings = call.load()
    with opened_state(settings) as db:
        found = read_status(db, settings)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), default=str))
    else:
        _print(found)


def _print(found: Status) -> None:
    from rich.table import Table

    from icestream.cli.rows import console

    _print_pipeline(found)
    table = Table(*_HEADINGS, box=None, pad_edge=False)
    for row in found.tables:
        table.add_row(*_cells(row))
    console().print(table)
    for row in found.tables:
        if row.copy is not None:
            typer.echo(f"\n{row.target} is being copied: {_copy_text(row.copy)}")
        _print_trouble(row)
    for group in found.stalled_groups:
        typer.echo(f"\ngroup {group} has no live worker, and staged files are kept for it")
        typer.echo(f"  hint: start its workers, or run `icestream forget-group {group}`")


def _print_trouble(row: TableStatus) -> None:
    if row.reason:
        typer.echo(f"\n{row.target} is {row.state}: {row.reason}")
        if row.hint:
            typer.echo(f"  hint: {row.hint}")
        if row.resumable:
            typer.echo(f"  or, once that is put right, run `icestream resume {row.target}`: its changes are kept")
    if row.failures:
        typer.echo(f"\n{row.target} failed {row.failures:,} times in a row, is tried again: {row.last_failure}")


def _print_pipeline(found: Status) -> None:
    typer.echo(f"pipeline  {found.pipeline} (group {found.group})")
    typer.echo(f"position  {found.position or 'nothing captured yet'}")
    typer.echo(f"capture   {_capture(found.slot)}")
    if found.source_lag_bytes is not None:
        typer.echo(f"behind    {found.source_lag_bytes:,} bytes of WAL are not captured yet{_kept(found.slot)}")
    _print_budget(found.slot)
    if found.watched_at is not None:
        typer.echo(f"watched   {found.watched_at:%Y-%m-%d %H:%M:%S %Z}")
    if found.copy is not None:
        typer.echo(f"copying   {_copy_text(found.copy)}")
    workers = ", ".join(
        f"{worker.id} on {worker.host} (pid {worker.pid}{'' if worker.alive else ', gone'})" for worker in found.workers
    )
    typer.echo(f"workers   {workers or 'none'}\n")


def _print_budget(slot: SlotStatus | None) -> None:
    if slot is not None and slot.held_by is not None:
        typer.echo(f"          more than the slot budget of {slot.budget_bytes:,} bytes: {slot.held_by}")
    if slot is not None and slot.safe_bytes is not None:
        typer.echo(f"          the server gives the slot up after {slot.safe_bytes:,} bytes more")


def _capture(slot: SlotStatus | None) -> str:
    if slot is None:
        return "not known: the source cannot be asked now"
    if not slot.exists:
        return f"not running: slot '{slot.name}' does not exist"
    if slot.lost:
        return f"not running: slot '{slot.name}' has lost its WAL"
    return f"running (slot '{slot.name}')" if slot.active else f"not running: nobody reads slot '{slot.name}'"


def _kept(slot: SlotStatus | None) -> str:
    kept = slot.retained_bytes if slot else None
    return "" if kept is None else f"; the server keeps {kept:,} bytes for the slot"


def _copy_text(copy: CopyStatus) -> str:
    left = "" if copy.left_seconds is None else f", about {_time_text(copy.left_seconds)} left"
    done = f"{copy.percent:.1f} %, {copy.rows:,} rows in {copy.bytes:,} bytes"
    return f"{done}, {copy.rows_per_second:,.0f} rows/s{left}"


def _time_text(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def _cells(row: TableStatus) -> tuple[str, ...]:
    return (
        row.target,
        row.write_mode,
        row.state,
        f"{row.pending_rows:,}",
        f"{row.rows_applied:,}",
        f"{row.lag_seconds:.1f} s",
        "-" if row.last_commit is None else row.last_commit.strftime("%Y-%m-%d %H:%M:%S %Z"),
        f"{row.dead_letters:,}",
        f"{row.failures:,}",
    )
