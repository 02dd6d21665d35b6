"""`icestream forget-group`: give up a group that reads the log."""

from __future__ import annotations

from typing import Annotated

import typer

from icestream.cli.options import Invocation, with_settings


@with_settings()
def forget_group(call: Invocation, group: Annotated[str, typer.Argument(help="The group, as `state.group`.")]) -> None:
    """Forget a group whose workers will not come back, so that staged files no longer wait for it.

    Its Iceberg tables stay as they are.
    """
    from icestream.runtime.forgetting import forget_group as forget
    from icestream.runtime.opening import opened_state

    settings = call.load()
    with opened_state(settings) as db:
        forget(db, settings, group)
    typer.echo(f"ok: group {group} is forgotten")
