"""`icestream ddl-trigger …`: event triggers in the source that make changes of shape certain."""

from __future__ import annotations

from typing import Annotated

import typer

from icestream.cli.options import Invocation, with_logging, with_settings

ddl_trigger_app = typer.Typer(
    name="ddl-trigger", help="Event triggers in the source that tell of every change of shape.", no_args_is_help=True
)


@ddl_trigger_app.command("install")
@with_settings()
def install(call: Invocation) -> None:
    """Install the event triggers in the source, or bring them to this version. Needs a superuser."""
    from icestream.runtime.opening import opened_source
    from icestream.sources.postgres import ddl_trigger

    with opened_source(call.load()) as conn:
        ddl_trigger.install(conn)
    typer.echo("ok: the event triggers are installed")


@ddl_trigger_app.command("remove")
@with_settings()
def remove(call: Invocation) -> None:
    """Remove the event triggers, and all that came with them, from the source."""
    from icestream.runtime.opening import opened_source
    from icestream.sources.postgres import ddl_trigger

    with opened_source(call.load()) as conn:
        ddl_trigger.remove(conn)
    typer.echo("ok: the event triggers are removed")


@ddl_trigger_app.command("print")
@with_logging()
def show(
    _call: Invocation,
    removal: Annotated[bool, typer.Option("--remove", help="What removes them.")] = False,
) -> None:
    """Print the SQL that installs the event triggers, for somebody who may run it."""
    from icestream.sources.postgres import ddl_trigger

    typer.echo(ddl_trigger.removal_text() if removal else ddl_trigger.creation_text(), nl=False)
