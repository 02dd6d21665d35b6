"""Only the claim hands out receipts: a source cannot be acknowledged with anything else."""

from __future__ import annotations

import ast
from pathlib import Path

import icestream

SOURCE = Path(icestream.__file__).parent


def constructs_receipt(file: Path) -> bool:
    calls = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
    names = {
        call.func.id if isinstance(call.func, ast.Name) else call.func.attr
        for call in calls
        if isinstance(call.func, ast.Name | ast.Attribute)
    }
    return "Receipt" in names


def test_only_the_log_index_constructs_a_receipt() -> None:
    constructors = [file.relative_to(SOURCE).as_posix() for file in SOURCE.rglob("*.py") if constructs_receipt(file)]
    assert constructors == ["state/log_index.py"]
