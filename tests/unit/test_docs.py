"""What the documents say exists, and what exists is in the documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from icestream.cli.main import app
from icestream.observe import metrics

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def all_text() -> str:
    return "\n".join(document.read_text() for document in DOCUMENTS)


def test_every_metric_is_documented_and_every_documented_one_exists() -> None:
    documented = set(re.findall(r"`(icestream_[a-z_]+)`", (ROOT / "docs/operating.md").read_text()))
    assert {definition.name for definition in metrics.DEFINITIONS} == documented - {"icestream_demo", "icestream_ddl"}


def test_metric_names_follow_their_kind() -> None:
    for definition in metrics.DEFINITIONS:
        assert definition.name.endswith("_total") == (definition.kind is metrics.Kind.COUNTER), definition.name


@pytest.mark.parametrize("name", sorted(str(command.name) for command in app.registered_commands))
def test_every_command_is_documented(name: str) -> None:
    assert re.search(rf"icestream {name}\b|`{name}[ `]", all_text()), name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    prose = re.sub(r"`[^`]*`", "", document.read_text())
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_files_named_in_the_architecture_exist() -> None:
    named = re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", (ROOT / "ARCHITECTURE.md").read_text())
    missing = [name for name in named if not ((ROOT / "src/icestream" / name).exists() or (ROOT / name).exists())]
    assert missing == []


def test_every_defect_has_tests_that_exist() -> None:
    lines = (ROOT / "docs/reference/defects.md").read_text().splitlines()
    rows = {cells[1].strip(): cells[3] for line in lines if (cells := line.split("|"))[1:2] and line.startswith("| B")}
    assert list(rows) == [f"B{number}" for number in range(1, 30)]
    for defect, named in rows.items():
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", named)
        cases = re.findall(r"`(\w+)`", named)
        assert tests or cases, defect
        for file, name in tests:
            assert f"def {name}(" in (ROOT / file).read_text(), f"{defect}: {file}::{name}"
        for name in cases:
            assert (ROOT / "tests/e2e/cases" / name / "expected.tsv").exists(), f"{defect}: case {name}"
