"""`icestream config …`: about the settings themselves."""

from __future__ import annotations

import typer

config_app = typer.Typer(name="config", help="About the settings.", no_args_is_help=True)


@config_app.callback()
def about_settings() -> None:
    """About the settings."""


@config_app.command("reference")
def reference() -> None:
    """Print the reference page of all settings, as Markdown."""
    from icestream.config.reference import render_reference

    typer.echo(render_reference(), nl=False)
