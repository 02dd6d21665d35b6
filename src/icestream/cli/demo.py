"""`icestream demo`: see it work, with nothing prepared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from icestream.cli.options import Invocation, with_logging


@with_logging()
def demo(
    call: Invocation,
    seconds: Annotated[float, typer.Option(min=1, help="How long the shop keeps changing.")] = 30,
    folder: Annotated[
        Path, typer.Option(help="Where database, tables and logs go; an earlier demo there is replaced.")
    ] = Path(".icestream/demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, last.")] = False,
    seed: Annotated[int, typer.Option(help="The same seed makes the same changes.", hidden=True)] = 1,
) -> None:
    """Start a database, change it, mirror it into Iceberg, and compare every row.

    Needs nothing but Java. Starts PostgreSQL in a folder of its own, fills a small shop and keeps changing it. In the
    end every table is compared row by row; the exit code is 0 only if all are equal. Ctrl-C ends it early, cleanly.
    """
    from icestream.embedded.demo import DemoOptions, run_demo

    options = DemoOptions(folder=folder, seconds=seconds, as_json=as_json, seed=seed, log_level=call.log_level)
    raise typer.Exit(run_demo(options))
