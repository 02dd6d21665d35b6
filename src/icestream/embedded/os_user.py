"""PostgreSQL refuses to run as root, so root hands it to an ordinary OS user; anybody else runs it as himself."""

from __future__ import annotations

import logging
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from icestream.errors import EnvironmentMissing
from icestream.observe.logs import fields

_CANDIDATES = ("postgres", "nobody")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OsUser:
    """Whom the server runs as. `uid` is None when that is the current user, and nothing has to be handed over."""

    uid: int | None = None
    gid: int | None = None

    @classmethod
    def for_folder(cls, data: Path) -> OsUser:
        """The owner of an existing cluster stays its owner."""
        if os.geteuid() != 0:
            return cls()
        if data.exists():
            owner = data.stat()
            return cls(owner.st_uid, owner.st_gid)
        for name in _CANDIDATES:
            try:
                entry = pwd.getpwnam(name)
            except KeyError:
                continue
            return cls(entry.pw_uid, entry.pw_gid)
        raise EnvironmentMissing(
            f"PostgreSQL does not run as root, and there is none of the OS users {', '.join(_CANDIDATES)}",
            hint="run as an ordinary user, or create one with `useradd --system postgres`",
        )

    @property
    def extra_groups(self) -> list[int] | None:
        return None if self.uid is None else []

    def give(self, path: Path) -> None:
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)

    def let_enter(self, folder: Path) -> None:
        """Lets the user reach `folder`: others may pass through its parents (not list them)."""
        if self.uid is None:
            return
        for part in (folder, *folder.parents):
            mode = part.stat()
            if mode.st_uid != self.uid and not mode.st_mode & stat.S_IXOTH:
                part.chmod(stat.S_IMODE(mode.st_mode) | stat.S_IXOTH)
                log.warning("folder opened for the database server", extra=fields(folder=part))
