"""`icestream stream-only` and `icestream materializer-only`: one role per process."""

from __future__ import annotations

from typing import Annotated

import typer

from icestream.cli.options import Invocation, SupervisedOption, with_settings
from icestream.cli.report import report
from icestream.errors import IcestreamError
from icestream.observe.logs import LogLevel
from icestream.runtime import exits


@with_settings(level=LogLevel.INFO, role="capture")
def stream_only(call: Invocation, supervised: SupervisedOption = False) -> None:
    """Only capture: read the source's changes, stage them, acknowledge them.

    One per replication slot. The tables are written by `materializer-only` workers, here or elsewhere.
    """
    from icestream.runtime.roles import run_capture_role

    try:
        run_capture_role(call.load(), supervised=supervised)
    except IcestreamError as err:
        _end(err, supervised=supervised)


@with_settings(level=LogLevel.INFO, role="worker")
def materializer_only(
    call: Invocation,
    worker_id: Annotated[
        str | None,
        typer.Option(
            "--worker-id",
            "--materializer-worker-id",
            help="The name of this worker, unique within its group. [MATERIALIZER_WORKER_ID]",
        ),
    ] = None,
    supervised: SupervisedOption = False,
) -> None:
    """Only materialize: write what was staged into the Iceberg tables.

    Any number of these share the tables among themselves; they find each other through the coordination state.
    """
    from icestream.runtime.roles import run_worker_role

    try:
        run_worker_role(call.load(), worker_id=worker_id, supervised=supervised)
    except IcestreamError as err:
        _end(err, supervised=supervised)


def _end(error: IcestreamError, *, supervised: bool) -> None:
    if not supervised:
        raise error
    report(error)
    raise typer.Exit(exits.supervised_exit_code(error))
