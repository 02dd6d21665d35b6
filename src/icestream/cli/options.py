"""The options that several commands share: where the settings come from, and how to log.

A command is written with what only it knows; a decorator adds the rest:

    @with_settings()
    def status(call: Invocation, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from icestream.cli.flags import FLAGS, Flag, taken_from
from icestream.errors import SettingsError
from icestream.observe import logs
from icestream.observe.logs import LogFormat, LogLevel
from icestream.runtime.child import SUPERVISED

if TYPE_CHECKING:
    from icestream.config.settings import Settings

log = logging.getLogger(__name__)

INHERITED_FLAGS = "ICESTREAM_FLAGS"  # set by a supervisor for its children
LOG_PANEL = "Logging"
SETTINGS_PANEL = "Settings (stronger than the environment, which is stronger than the file)"

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="The settings file; without one the environment is used."),
]
LogLevelOption = Annotated[
    LogLevel | None, typer.Option("--log-level", help="How much to say on stderr.", rich_help_panel=LOG_PANEL)
]
LogFormatOption = Annotated[
    LogFormat | None,
    typer.Option("--log-format", help="Lines for a person or JSON for a machine.", rich_help_panel=LOG_PANEL),
]

SupervisedOption = Annotated[
    bool, typer.Option(SUPERVISED, hidden=True, help="Drain when stdin ends; say by the exit code if a restart helps.")
]

Command = Callable[..., None]


@dataclass(frozen=True)
class LogOptions:
    level: LogLevel | None = None
    format: LogFormat | None = None


@dataclass(frozen=True)
class Invocation:
    """How the command was called: everything but its own options."""

    log_level: LogLevel
    log_format: LogFormat
    config: Path | None = None
    flags: dict[str, str] = field(default_factory=dict, repr=False)

    def load(self) -> Settings:
        """The settings; notices about them go to stderr. Raises SettingsError."""
        from icestream.config import load
        from icestream.config.environment import FLAGS as KEYS

        overrides = {".".join(KEYS[option]): value for option, value in self.flags.items()}
        loaded = load(self.config, os.environ, overrides)
        for notice in loaded.notices:
            log.warning("%s", notice)
        return loaded.settings

    def environment(self) -> dict[str, str]:
        """What a child process needs to come to the same settings. Not as arguments: those everyone can read."""
        return {**os.environ, INHERITED_FLAGS: json.dumps(self.flags)}

    def as_arguments(self) -> list[str]:
        """The options that make another icestream command read the same file and log alike."""
        arguments = ["--log-level", self.log_level.value, "--log-format", self.log_format.value]
        return arguments if self.config is None else [*arguments, "--config", str(self.config)]


def with_settings(
    *, level: LogLevel = LogLevel.WARNING, role: str | None = None, show: bool = False
) -> Callable[[Command], Command]:
    """Adds `--config`, the settings flags and the logging options. `show` lists the flags in the command's help."""
    shared = [_parameter("config", ConfigOption), *(_flag(flag, show=show) for flag in FLAGS)]
    return lambda function: _with_shared(function, level, role, shared)


def with_logging(*, level: LogLevel = LogLevel.WARNING) -> Callable[[Command], Command]:
    """Adds the logging options only, for commands that need no settings."""
    return lambda function: _with_shared(function, level, None, [])


def _with_shared(
    function: Command, default_level: LogLevel, role: str | None, shared: list[inspect.Parameter]
) -> Command:
    @functools.wraps(function)
    def command(ctx: typer.Context, **values: Any) -> None:
        call = _invocation(ctx, values, default_level, has_settings=bool(shared))
        logs.configure(call.log_level, call.log_format, role=role)
        function(call, **values)

    _, *own = inspect.signature(function, eval_str=True).parameters.values()
    parameters = [_parameter("ctx", typer.Context, inspect.Parameter.empty), *own, *shared, *_logging()]
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _invocation(
    ctx: typer.Context, values: dict[str, Any], default_level: LogLevel, *, has_settings: bool
) -> Invocation:
    shared: LogOptions = ctx.obj or LogOptions()
    level, log_format = values.pop("log_level"), values.pop("log_format")
    return Invocation(
        log_level=level or shared.level or default_level,
        log_format=log_format or shared.format or LogFormat.TEXT,
        config=values.pop("config") if has_settings else None,
        flags={**_inherited_flags(), **taken_from(values)} if has_settings else {},
    )


def _inherited_flags() -> dict[str, str]:
    text = os.environ.get(INHERITED_FLAGS) or "{}"
    try:
        flags = json.loads(text)
    except ValueError:
        flags = None
    known = {flag.option for flag in FLAGS}
    if not isinstance(flags, dict) or not all(name in known and isinstance(flags[name], str) for name in flags):
        raise SettingsError(
            f"the variable {INHERITED_FLAGS} does not hold flags; `icestream run` sets it for its own processes",
            hint=f"run `unset {INHERITED_FLAGS}`",
        )
    return flags


def _logging() -> list[inspect.Parameter]:
    return [_parameter("log_level", LogLevelOption), _parameter("log_format", LogFormatOption)]


def _flag(flag: Flag, *, show: bool) -> inspect.Parameter:
    option = typer.Option(
        flag.option, help=f"{flag.help} [{flag.variable}]", rich_help_panel=SETTINGS_PANEL, hidden=not show
    )
    kind: Any = bool if flag.is_switch else str | None
    return _parameter(flag.parameter, Annotated[kind, option], False if flag.is_switch else None)


def _parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
