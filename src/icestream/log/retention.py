"""Removing what nobody needs: files that every group has passed, uploads that were never claimed, moved letters."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Final

from icestream.errors import StateUnavailable, StorageError
from icestream.log.store import Store
from icestream.observe.logs import fields
from icestream.state.retention import Retention

log = logging.getLogger(__name__)

_SWEEP_INTERVAL_S: Final = 15.0
_MOST_LEFT: Final = 100  # files that cannot be removed; then the store itself is in trouble


class LogRetention:
    """Sweeps in a thread of its own while capture runs. A sweep may be cut off anywhere: the next one goes on."""

    def __init__(
        self, retention: Retention, store: Store, *, keep_s: float, parked_keep_s: float = 0, grace_s: float
    ) -> None:
        self._retention = retention
        self._store = store
        self._keep_s = keep_s
        self._parked_keep_s = parked_keep_s
        self._grace_s = grace_s
        self._is_stuck = False

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(min(_SWEEP_INTERVAL_S, self._keep_s)):
            self.try_sweep()

    def try_sweep(self) -> None:
        """What fails now is tried again by the next sweep; until then the files only take space."""
        try:
            removed = self.sweep()
        except StateUnavailable as err:
            log.debug("sweep was cut off", extra=fields(reason=err))
        except Exception as err:
            log.warning("sweep failed", exc_info=err)
        else:
            if removed:
                log.debug("removed staged files", extra=fields(files=removed))

    def sweep(self) -> int:
        """Gives the number of files removed. Files that cannot be removed now are left out."""
        self._retention.give_up_passed(self._keep_s, self._parked_keep_s)
        self._retention.give_up_intents(self._grace_s)
        removed, left = 0, list[str]()
        while len(left) < _MOST_LEFT and (paths := self._retention.garbage(leave_out=left)):
            refused = self._delete(paths, most=_MOST_LEFT - len(left))
            left += refused
            gone = [path for path in paths if path not in refused]
            self._retention.forget(gone)
            removed += len(gone)
        self._is_stuck = bool(left)
        self._retention.forget_letters()
        return removed

    def _delete(self, paths: Sequence[str], *, most: int) -> frozenset[str]:
        """Gives those that are still there; all that are left once `most` have failed."""
        refused: list[str] = []
        for number, path in enumerate(paths):
            try:
                self._store.delete(path)
            except StorageError as err:
                refused.append(path)
                self._warn_once(err)
            if len(refused) == most:
                return frozenset([*refused, *paths[number + 1 :]])
        return frozenset(refused)

    def _warn_once(self, err: StorageError) -> None:
        if not self._is_stuck:
            log.warning("staged files cannot be removed", exc_info=err)
        self._is_stuck = True
