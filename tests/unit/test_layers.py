"""The rule of the house: a module imports only from its own layer downwards, and heavy things stay in their rooms."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import icestream

ROOT = Path(icestream.__file__).parent

LAYERS = {
    "errors": 0,
    "model": 0,
    "config": 1,
    "observe": 1,
    "state": 2,
    "log": 2,
    "lake": 2,
    "sources": 3,
    "capture": 3,
    "materialize": 3,
    "verify": 3,
    "maintain": 3,
    "runtime": 4,
    "embedded": 4,
    "cli": 5,
    "__main__": 5,
}
SPARK_ROOMS = ("lake/", "materialize/", "verify/compare.py")
PY4J_ROOMS = ("lake/",)
# Typer itself loads pydantic to read a subcommand's options, so our settings models stand for it there.
HEAVY = ("pyspark", "pyarrow", "numpy", "psycopg", "prometheus_client", "adbc_driver_postgresql", "icestream.config")


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def imported(path: Path) -> Iterator[str]:
    """Everything a module imports, also inside its functions, but not for type checkers only."""
    tree = ast.parse(path.read_text())
    unseen = {id(node) for guard in ast.walk(tree) if _is_type_checking(guard) for node in ast.walk(guard)}
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_its_own_layer_downwards(path: Path) -> None:
    layer = LAYERS[room(path)]
    for name in imported(path):
        package, _, rest = name.partition(".")
        if package == "icestream" and rest and rest != "__version__":
            other = rest.split(".")[0]
            assert LAYERS[other] <= layer, f"{room(path)} (layer {layer}) imports {name} (layer {LAYERS[other]})"


@pytest.mark.parametrize(("library", "rooms"), [("pyspark", SPARK_ROOMS), ("py4j", PY4J_ROOMS)])
def test_spark_stays_in_its_rooms(library: str, rooms: tuple[str, ...]) -> None:
    importers = {
        str(path.relative_to(ROOT)) for path in modules() if any(n.split(".")[0] == library for n in imported(path))
    }
    assert [path for path in sorted(importers) if not path.startswith(rooms)] == []


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], (*HEAVY, "pydantic")),
        (["--version"], HEAVY),
        (["run", "--help"], HEAVY),
        (["config", "--help"], HEAVY),
    ],
)
def test_help_imports_nothing_heavy(arguments: list[str], heavy: tuple[str, ...]) -> None:
    script = f"""
import sys
from icestream.cli.main import app
try:
    app({arguments!r})
except SystemExit as end:
    assert end.code == 0, end.code
print("loaded:", *sorted(set({heavy!r}) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == "loaded:"
