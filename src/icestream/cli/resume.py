"""`icestream resume`: let parked tables go on."""

from __future__ import annotations

from typing import Annotated

import typer

from icestream.cli.options import Invocation, with_settings


@with_settings()
def resume(
    call: Invocation,
    tables: Annotated[list[str], typer.Argument(help="Tables, by source name or Iceberg name.", metavar="TABLE...")],
) -> None:
    """Let parked tables go on from where they were, once what parked them is put right.

    Nothing is copied: the running pipeline applies what the log has kept (`state.parked_retention`). Where changes are
    missing, this says so; then `icestream resync` is the way out.
    """
    from icestream.runtime.opening import opened_state
    from icestream.runtime.resume import resume_tables

    settings = call.load()
    with opened_state(settings) as db:
        for resumed in resume_tables(db, settings, tables):
            typer.echo(f"ok: {resumed.key} goes on; {resumed.waiting:,} changes wait for it")
