"""`icestream snapshot`: the first copies, and nothing else."""

from __future__ import annotations

import typer

from icestream.cli.options import Invocation, SupervisedOption, with_settings
from icestream.observe.logs import LogLevel


@with_settings(level=LogLevel.INFO, role="snapshot", show=True)
def snapshot(call: Invocation, supervised: SupervisedOption = False) -> None:
    """Copy the configured tables, then end.

    Makes publication and slot where they are missing and copies what is not copied yet. Ends with exit code 0 when all
    tables are live, with 1 when one could not be copied. Changes are staged meanwhile, and applied by the next `run`.
    The same as `run` with `snapshot_only`.
    """
    from icestream.runtime.run import run_pipeline

    call.flags["--snapshot-only"] = "true"
    settings = call.load()
    code = run_pipeline(settings, arguments=call.as_arguments(), environ=call.environment(), supervised=supervised)
    raise typer.Exit(code)
