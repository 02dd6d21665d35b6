"""`icestream migrate-coord`: the coordination schema."""

from __future__ import annotations

import typer

from icestream.cli.options import Invocation, with_settings


@with_settings()
def migrate_coord(call: Invocation) -> None:
    """Create the coordination schema, or bring it up to this version.

    `run` and `stream-only` do the same when they start. May be repeated.
    """
    from icestream.runtime.opening import opened_state
    from icestream.state.migrate import migrate

    settings = call.load()
    with opened_state(settings) as db:
        version = migrate(db)
    typer.echo(f"ok: schema {settings.state.coordinator_schema} is at version {version}")
