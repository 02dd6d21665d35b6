"""`icestream run`: everything on one machine."""

from __future__ import annotations

import typer

from icestream.cli.options import Invocation, SupervisedOption, with_settings
from icestream.observe.logs import LogLevel


@with_settings(level=LogLevel.INFO, role="run", show=True)
def run(call: Invocation, supervised: SupervisedOption = False) -> None:
    """Replicate the configured tables until stopped.

    Starts the roles `stream-only` and `materializer-only` as processes of their own and starts them again when they
    fail. Ctrl-C (or SIGTERM) drains: what was captured is applied, then everything ends with exit code 0. A second
    Ctrl-C stops at once; nothing is lost, the next start goes on from there.
    """
    from icestream.runtime.run import run_pipeline

    settings = call.load()
    code = run_pipeline(settings, arguments=call.as_arguments(), environ=call.environment(), supervised=supervised)
    raise typer.Exit(code)
