"""The proof that a position is durable."""

from __future__ import annotations

from dataclasses import dataclass

from icestream.model.position import Lsn


@dataclass(frozen=True)
class Receipt:
    """Handed out by `state.log_index` once the claim is committed; the only thing a source can be acknowledged with.

    A test asserts that nothing outside `state/log_index.py` constructs one.
    """

    position: Lsn
    claim_id: str
