"""How long to wait before a role is started again."""

from __future__ import annotations

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
HEALTHY_AFTER_S = 60.0  # a run this long ended for a new reason, so the delays begin anew


class Backoff:
    """Doubles the delay with every failure, and starts over after a healthy run."""

    def __init__(self) -> None:
        self._next = FIRST_DELAY_S

    def delay_after(self, run_s: float) -> float:
        """The pause after a run of `run_s` seconds that failed."""
        if run_s >= HEALTHY_AFTER_S:
            self._next = FIRST_DELAY_S
        delay = self._next
        self._next = min(self._next * 2, LONGEST_DELAY_S)
        return delay
