"""How much a dead letter holds: more of a value helps nobody, and PostgreSQL and Spark have limits of their own.

Whoever reads values brings at most one character more than that, which tells that something was cut.
"""

from __future__ import annotations

from typing import Final

LONGEST_VALUE: Final = 1024**2  # characters
LONGEST_KEY_PART: Final = 64 * 1024
