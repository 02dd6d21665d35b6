"""`icestream cleanup`: take everything back that a pipeline has made in the source and the state."""

from __future__ import annotations

from typing import Annotated

import typer

from icestream.cli.options import Invocation, with_settings


@with_settings()
def cleanup(
    call: Invocation,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove the slot, the publication, the coordination state and the staged files of this pipeline.

    The Iceberg tables stay. To replicate into them again, a new first copy is needed.
    """
    from icestream.runtime.cleanup import plan, remove

    settings = call.load()
    typer.echo("This removes:")
    for line in plan(settings):
        typer.echo(f"  - {line}")
    if not yes:
        typer.confirm("Go on?", abort=True)
    for line in remove(settings):
        typer.echo(line)
