"""Names that are unique for ever."""

from __future__ import annotations

import uuid

import uuid6


def new_id() -> str:
    """A UUIDv7: sorts by the time it was made."""
    return str(uuid6.uuid7())


def new_epoch() -> str:
    return str(uuid.uuid4())
