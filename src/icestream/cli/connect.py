"""`icestream connect-pg` and `icestream connect-iceberg`: does the connection work?"""

from __future__ import annotations

import typer

from icestream.cli.options import Invocation, with_settings


@with_settings()
def connect_pg(call: Invocation) -> None:
    """Connect to the source as replication does, and say what the slot looks like. Changes nothing."""
    from icestream.runtime.connections import describe_source

    for line in describe_source(call.load()):
        typer.echo(line)


@with_settings()
def connect_iceberg(call: Invocation) -> None:
    """Open the Iceberg catalog and make the namespaces of the configured tables."""
    from icestream.runtime.connections import describe_catalog

    for line in describe_catalog(call.load()):
        typer.echo(line)
