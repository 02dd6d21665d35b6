"""Two clones made on different days run with the same packages."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def wanted() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]


def pinned() -> dict[str, str]:
    lines = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in lines}


def installed() -> dict[str, str]:
    """Everything that the project's own requirements bring in, one from another."""
    found: dict[str, str] = {}
    asked: set[str] = set()
    open_ = wanted()
    while open_:
        requirement = Requirement(open_.pop())
        if str(requirement) in asked:
            continue
        asked.add(str(requirement))
        try:
            there = distribution(requirement.name)
        except PackageNotFoundError:
            continue  # not meant for this platform, or the group is not installed
        found[canonicalize_name(requirement.name)] = there.version
        open_ += needed(there.requires or [], requirement.extras)
    return found


def needed(requirements: list[str], extras: set[str]) -> Iterator[str]:
    for text in requirements:
        marker = Requirement(text).marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield text.partition(";")[0]


def test_everything_that_the_requirements_bring_in_is_pinned() -> None:
    missing = installed().keys() - pinned().keys()
    assert missing == set(), "pin them in constraints.txt"


def test_what_is_installed_has_the_pinned_version() -> None:
    others = {name: version for name, version in installed().items() if pinned().get(name, version) != version}
    assert others == {}, "run `make setup`"
