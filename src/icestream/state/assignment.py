"""Which worker works on which table. Every worker computes the same answer, so no leader is needed."""

from __future__ import annotations

from collections.abc import Sequence


def assign(tables: Sequence[str], workers: Sequence[str]) -> dict[str, list[str]]:
    """Deals the sorted tables to the sorted workers, one after the other."""
    hands: dict[str, list[str]] = {worker: [] for worker in sorted(set(workers))}
    names = list(hands)
    for turn, table in enumerate(sorted(set(tables)) if names else ()):
        hands[names[turn % len(names)]].append(table)
    return hands
