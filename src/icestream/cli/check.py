"""`icestream check`: would `run` work?"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer

from icestream.cli.options import Invocation, with_settings
from icestream.runtime import exits

if TYPE_CHECKING:
    from icestream.verify.findings import Finding


@with_settings(show=True)
def check(
    call: Invocation,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: ok, and the findings.")] = False,
) -> None:
    """Check settings, source, state, catalog and storage. Changes nothing.

    Prints what was found, worst first. The exit code is 1 when something would stop `icestream run`.
    """
    from icestream.runtime.checks import check_all, is_fatal

    findings = check_all(call.load())
    ready = not any(is_fatal(finding) for finding in findings)
    if as_json:
        typer.echo(json.dumps({"ok": ready, "findings": [dataclasses.asdict(finding) for finding in findings]}))
    else:
        _print(findings)
        if ready:
            typer.echo("ok: ready to run")
    if not ready:
        raise typer.Exit(exits.FAILED)


def _print(findings: list[Finding]) -> None:
    for finding in findings:
        typer.echo(f"{finding.severity.value}: {finding.what}")
        if finding.why:
            typer.echo(f"  why: {finding.why}")
        if finding.hint:
            typer.echo(f"  hint: {finding.hint}")
