"""`icestream init`: a settings file for a database that is there."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from icestream.cli.options import Invocation, with_settings

_DEFAULTS = {"TABLES": ("--tables", "*.*"), "WAREHOUSE": ("--warehouse", "./warehouse")}


@with_settings(show=True)
def init(
    call: Invocation,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The settings file to write.")] = Path("icestream.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Look at a database and write a settings file, and the SQL that prepares the source. Changes nothing in it.

    Needs `--postgres-url` (or POSTGRES_URL); `--tables` narrows what is looked at, e.g. `--tables 'public.*'`. Tables
    that can't be replicated as they are, are in the file as comments, with what repairs them.
    """
    from icestream.runtime.init import draft

    statements = file.with_suffix(".sql")
    _require_free([file, statements], force=force)
    found = draft(_with_defaults(call).load())
    _write(file, found.settings)
    _write(statements, found.sql)
    typer.echo(f"ok: {file} with {found.fit:,} tables" + (f", {found.unfit:,} to be put right" if found.unfit else ""))
    typer.echo(f"ok: {statements} with the role, grants and publication that the source needs")
    typer.echo(f"\nNext:\n  psql … -f {statements}    # as the owner of the tables, once you have read it")
    for command in ("check", "plan", "run"):
        typer.echo(f"  icestream {command} --config {file}")


def _with_defaults(call: Invocation) -> Invocation:
    """What a settings file would have to say, and is only about to be written."""
    if call.config is not None:
        return call
    missing = {option: value for name, (option, value) in _DEFAULTS.items() if not os.environ.get(name)}
    return replace(call, flags={**missing, **call.flags})


def _require_free(files: list[Path], *, force: bool) -> None:
    from icestream.errors import SettingsError

    there = [str(file) for file in files if file.exists()]
    if there and not force:
        raise SettingsError(
            f"{' and '.join(there)} exists already", hint="name another file, or replace it with --force"
        )


def _write(file: Path, text: str) -> None:
    from icestream.errors import SettingsError

    try:
        file.write_text(text, encoding="utf-8")
    except OSError as err:
        raise SettingsError(f"{file} cannot be written: {err.strerror}", hint="name another file") from err
