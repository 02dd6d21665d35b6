"""The `icestream` command: its subcommands, and the last place where an error is caught."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import icestream
from icestream.cli.check import check
from icestream.cli.cleanup import cleanup
from icestream.cli.config import config_app
from icestream.cli.connect import connect_iceberg, connect_pg
from icestream.cli.ddl_trigger import ddl_trigger_app
from icestream.cli.demo import demo
from icestream.cli.forget_group import forget_group
from icestream.cli.init import init
from icestream.cli.migrate import migrate_coord
from icestream.cli.options import LogFormatOption, LogLevelOption, LogOptions
from icestream.cli.plan import plan
from icestream.cli.report import report, report_unexpected
from icestream.cli.resume import resume
from icestream.cli.resync import resync
from icestream.cli.roles import materializer_only, stream_only
from icestream.cli.run import run
from icestream.cli.snapshot import snapshot
from icestream.cli.sql import sql
from icestream.cli.status import status
from icestream.errors import IcestreamError
from icestream.observe.logs import LogFormat, LogLevel, configure
from icestream.runtime import exits

START = "Start"
LOOK = "Look"
CARE = "Set up and repair"
ROLES = "One role per process"

app = typer.Typer(
    name="icestream",
    help="Keeps Apache Iceberg tables equal to PostgreSQL tables. New here? Try `icestream demo`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"icestream {icestream.__version__}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
) -> None:
    ctx.obj = LogOptions(log_level, log_format)
    configure(log_level or LogLevel.WARNING, log_format or LogFormat.TEXT)


app.command("demo", rich_help_panel=START)(demo)
app.command("init", rich_help_panel=START)(init)
app.command("check", rich_help_panel=START)(check)
app.command("plan", rich_help_panel=START)(plan)
app.command("run", rich_help_panel=START)(run)
app.command("snapshot", rich_help_panel=START)(snapshot)
app.command("status", rich_help_panel=LOOK)(status)
app.command("sql", rich_help_panel=LOOK)(sql)
app.add_typer(config_app, rich_help_panel=LOOK)
app.command("migrate-coord", rich_help_panel=CARE)(migrate_coord)
app.command("connect-pg", rich_help_panel=CARE)(connect_pg)
app.command("connect-iceberg", rich_help_panel=CARE)(connect_iceberg)
app.add_typer(ddl_trigger_app, rich_help_panel=CARE)
app.command("resume", rich_help_panel=CARE)(resume)
app.command("resync", rich_help_panel=CARE)(resync)
app.command("forget-group", rich_help_panel=CARE)(forget_group)
app.command("cleanup", rich_help_panel=CARE)(cleanup)
app.command("stream-only", rich_help_panel=ROLES)(stream_only)
app.command("materializer-only", rich_help_panel=ROLES)(materializer_only)


def main() -> None:
    """Runs the command; ends the process with its exit code, and never with a traceback."""
    try:
        app(prog_name="icestream")
    except IcestreamError as err:
        report(err)
        sys.exit(exits.exit_code(err))
    except Exception as err:  # noqa: BLE001  nothing is above us: whatever it is, it is told in one line
        report_unexpected(err)
        sys.exit(exits.INTERNAL)
