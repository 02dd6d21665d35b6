"""`icestream resync`: copy tables anew."""

from __future__ import annotations

from typing import Annotated

import typer

from icestream.cli.options import Invocation, with_settings


@with_settings()
def resync(
    call: Invocation,
    tables: Annotated[list[str], typer.Argument(help="Tables, by source name or Iceberg name.", metavar="TABLE...")],
) -> None:
    """Copy tables anew from the source; the way out for a parked table.

    The running pipeline makes the copies; readers see the old contents until the new ones are complete.
    """
    from icestream.runtime.opening import opened_state
    from icestream.runtime.resync import request_copies

    settings = call.load()
    with opened_state(settings) as db:
        for key in request_copies(db, settings, tables):
            typer.echo(f"ok: {key} will be copied anew")
