"""No step of the code is left out of the crash tests."""

from __future__ import annotations

import re
from pathlib import Path

import icestream
from support.steps import COPY_STEPS, CYCLE_STEPS, FLUSH_STEPS, START_STEPS

_REACHED = re.compile(r'^\s+reached\("([^"]+)"\)', re.MULTILINE)


def test_every_step_of_the_code_has_its_crash_test() -> None:
    sources = Path(icestream.__file__).parent.rglob("*.py")
    in_code = sorted(step for source in sources for step in _REACHED.findall(source.read_text()))
    assert in_code == sorted([*START_STEPS, *FLUSH_STEPS, *COPY_STEPS, *CYCLE_STEPS])
