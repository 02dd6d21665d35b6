"""`icestream cleanup`: take everything back that a pipeline has made in the source and the state."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from icestream.cli.options import Invocation, with_settings
from icestream.errors import EnvironmentMissing


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
        _ask()
    for line in remove(settings):
        typer.echo(line)


def _ask() -> None:
    """What comes through a pipe was written before anyone could read what is removed: it is no answer."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise EnvironmentMissing(
            "cleanup asks before it removes anything, and there is no terminal to ask at",
            hint="run `icestream cleanup --yes` if all of this is to be removed",
        )
    typer.confirm("Go on?", abort=True)
