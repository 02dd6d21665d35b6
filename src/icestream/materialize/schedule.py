"""When a table is due: enough has come, or its interval has passed; after a failure it waits a growing while."""

from __future__ import annotations

from dataclasses import dataclass

from icestream.state.log_entries import PendingLog

EAGER_ROWS = 100_000  # so much waits that the interval does not matter
MAX_ROWS = 1_000_000
_IDLE_LOOK_S = 60.0  # a table without changes is looked at, too: somebody may have rolled it back
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 60.0
_REFUSAL_PAUSE_S = 0.1
_REFUSALS_BEFORE_SHRINKING = 3
_MOST_HALVINGS = 20  # then it is a single row


@dataclass
class Turn:
    """One table's place in the schedule. Times are of a monotonic clock."""

    started: float = float("-inf")
    not_before: float = float("-inf")
    failures: int = 0
    refusals: int = 0
    running: bool = False

    def is_free(self, now: float) -> bool:
        return not self.running and now >= self.not_before

    def is_due(self, waiting: PendingLog | None, now: float, interval_s: float) -> bool:
        if not self.is_free(now):
            return False
        if waiting is None:
            return self.is_over(now, _IDLE_LOOK_S)
        return waiting.rows >= EAGER_ROWS or self.is_over(now, interval_s)

    def is_over(self, now: float, interval_s: float) -> bool:
        """Whether the interval since it last began has passed, and nothing holds it up."""
        return self.is_free(now) and now - self.started >= interval_s

    def begin(self, now: float) -> None:
        self.running, self.started = True, now

    def succeed(self) -> None:
        self.running, self.failures, self.refusals, self.not_before = False, 0, 0, float("-inf")

    def refuse(self, now: float) -> None:
        """The table moved under the batch: redone almost at once; after a few times with a smaller batch."""
        self.running = False
        self.refusals += 1
        self.not_before = now + min(_REFUSAL_PAUSE_S * self.refusals, _LONGEST_PAUSE_S)

    def fail(self, now: float) -> None:
        self.running = False
        self.failures += 1
        self.not_before = now + min(_FIRST_PAUSE_S * 2 ** (self.failures - 1), _LONGEST_PAUSE_S)

    def max_rows(self, failures: int = 0) -> int:
        """`failures`: of the table in a row, also those of workers before this one, which a batch may have ended."""
        refusals = max(0, self.refusals - _REFUSALS_BEFORE_SHRINKING + 1)
        shrink = max(refusals, self.failures, failures)
        return max(1, MAX_ROWS >> min(2 * shrink, _MOST_HALVINGS))
