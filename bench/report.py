"""Figures and how they are shown: as a table, as Markdown, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from box import Box


@dataclass(frozen=True)
class Figure:
    """One measured number. `at_least` and `at_most` are what we want of it."""

    scenario: str
    name: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def goal(self) -> str:
        if self.at_least is not None:
            return f"≥ {_number(self.at_least)}"
        return "" if self.at_most is None else f"≤ {_number(self.at_most)}"

    @property
    def verdict(self) -> str:
        if self.at_least is None and self.at_most is None:
            return ""
        reached = self.value >= (self.at_least or 0) if self.at_most is None else self.value <= self.at_most
        return "reached" if reached else "missed"

    def cells(self) -> tuple[str, ...]:
        return self.scenario, self.name, f"{_number(self.value)} {self.unit}".strip(), self.goal, self.verdict


@dataclass(frozen=True)
class Report:
    box: Box
    options: dict[str, object]
    figures: Sequence[Figure]
    notes: Sequence[str]

    def table(self) -> str:
        rows = [("", "", "measured", "goal", ""), *(figure.cells() for figure in self.figures)]
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = [
            f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}  {row[4]}"
            for row in rows
        ]
        return "\n".join([*(line.rstrip() for line in lines), *self.notes])

    def markdown(self) -> str:
        lines = [
            *(f"- {line}" for line in self.box.lines()),
            "- " + ", ".join(f"{name} {value}" for name, value in self.options.items()),
            "",
            "| scenario | figure | measured | goal | |",
            "|---|---|---:|---:|---|",
            *("| " + " | ".join(figure.cells()) + " |" for figure in self.figures),
            *(f"\n{note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def write_json(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        figures = [{**asdict(figure), "verdict": figure.verdict} for figure in self.figures]
        content = {"box": asdict(self.box), "options": self.options, "figures": figures, "notes": list(self.notes)}
        file = folder / f"{self.box.date.replace(':', '').replace(' ', '-')}.json"
        file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        return file


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}".rstrip("0").rstrip(".")
