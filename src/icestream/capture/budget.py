"""How much WAL the server keeps for the slot, and how much it should keep at most."""

from __future__ import annotations

import logging

from icestream.observe.logs import fields
from icestream.sources.postgres.connection import Connection
from icestream.sources.postgres.slot import Retained, find_slot, read_position, retained

log = logging.getLogger(__name__)

_NEARLY_LOST = "unreserved"  # the next checkpoint may remove what the slot still needs


class SlotBudget:
    """Says when it is exceeded, and when it is kept again. The slot itself is left as it is: WAL is never given up."""

    def __init__(self, slot: str, budget: int) -> None:
        self._slot = slot
        self._budget = budget
        self._is_exceeded = False
        self._is_nearly_lost = False

    def look(self, conn: Connection) -> None:
        slot = find_slot(conn, self._slot)
        kept = None if slot is None else retained(slot, read_position(conn))
        if slot is None or kept is None:
            return
        self._note_size(kept)
        if slot.wal_status == _NEARLY_LOST and not self._is_nearly_lost:
            hint = "raise `max_slot_wal_keep_size`, or find out what holds capture up"
            log.error("slot is about to be lost", extra=fields(slot=self._slot, retained=kept.size, hint=hint))
        self._is_nearly_lost = slot.wal_status == _NEARLY_LOST

    def _note_size(self, kept: Retained) -> None:
        is_exceeded = kept.size > self._budget
        facts = {"slot": self._slot, "retained": kept.size, "budget": self._budget}
        if is_exceeded and not self._is_exceeded:
            log.warning("slot keeps more wal than its budget", extra=fields(**facts, held_by=kept.held_by))
        elif self._is_exceeded and not is_exceeded:
            log.info("slot keeps to its budget again", extra=fields(**facts))
        self._is_exceeded = is_exceeded
