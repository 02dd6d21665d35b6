"""Every error Icestream raises on purpose.

IcestreamError
├── SettingsError             a settings file or variable is wrong
├── PreflightError            the source, the state or the lake is not fit to start
├── EnvironmentMissing        Java, a jar, a program, a terminal is not there
├── SourceError               PostgreSQL refuses or is not what we expect
│   ├── SourceUnavailable       cannot be reached now
│   ├── SourceForbidden         a privilege is missing
│   ├── SlotLost                the slot is gone or its WAL was removed
│   ├── SlotInUse               another process reads the slot
│   ├── WrongCluster            the source is another database cluster than before
│   ├── TablesChanged           a table of the source is no longer the one it was
│   ├── ProtocolError           the replication stream is not what pgoutput promises
│   ├── CopySnapshotGone        the exported snapshot of a first copy is no longer there
│   ├── SourceReshaped          a table is no longer what the snapshot of its copy saw
│   └── CopyStopped             a first copy was interrupted, and goes on later
├── StateError                the coordination schema
│   ├── StateUnavailable        cannot be reached now
│   ├── StateLimit              something is larger than the database takes
│   ├── StateVersionMismatch    made by another version, or by another program
│   │   └── StateMissing          not made yet
│   └── ClaimRefused            another capture has moved the log
├── StorageError              staged files cannot be written or read
└── LakeError                 Iceberg or Spark
    ├── LakeUnavailable         the catalog cannot be reached now
    ├── TableParked             this table needs a person; the others go on
    ├── CopyNeeded              this table can go on only with a new copy, which is made by itself
    └── PublishRefused          the table moved under us; the batch is redone

Each class says whether doing the same again can help (`retry`); each error may carry the next
command to run (`hint`).
"""

from __future__ import annotations

import enum
from typing import ClassVar


class Retry(enum.Enum):
    NOW = "now"  # redo the step from its beginning
    LATER = "later"  # wait, with growing pauses, then redo
    NEVER = "never"  # a person has to change something


class IcestreamError(Exception):
    """Base of all errors that are reported without a traceback."""

    retry: ClassVar[Retry] = Retry.NEVER

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


class SettingsError(IcestreamError):
    """One or more settings are wrong; `problems` holds them all."""

    def __init__(self, message: str, *, problems: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problems = problems


class PreflightError(IcestreamError):
    pass


class EnvironmentMissing(IcestreamError):
    pass


class SourceError(IcestreamError):
    pass


class SourceUnavailable(SourceError):
    retry = Retry.LATER


class SourceForbidden(SourceError):
    """A privilege is missing; where it is one of a table, that table is parked."""


class SlotLost(SourceError):
    pass


class TablesChanged(SourceError):
    """The stream ends, so that tables and publication are looked at before it goes on."""

    retry = Retry.NOW


class SlotInUse(SourceError):
    retry = Retry.LATER


class WrongCluster(SourceError):
    pass


class ProtocolError(SourceError):
    pass


class CopySnapshotGone(SourceError):
    retry = Retry.LATER


class SourceReshaped(SourceError):
    """A copy at another snapshot helps."""

    retry = Retry.NOW


class CopyStopped(SourceError):
    retry = Retry.LATER


class StateError(IcestreamError):
    pass


class StateUnavailable(StateError):
    retry = Retry.LATER


class StateLimit(StateError):
    """Doing the same again fails the same way: the table in question is parked."""


class StateVersionMismatch(StateError):
    pass


class StateMissing(StateVersionMismatch):
    pass


class ClaimRefused(StateError):
    """Redoing the claim cannot help, restarting the capture from the stored position does."""

    retry = Retry.LATER


class StorageError(IcestreamError):
    retry = Retry.LATER


class LakeError(IcestreamError):
    pass


class LakeUnavailable(LakeError):
    retry = Retry.LATER


class TableParked(LakeError):
    pass


class CopyNeeded(LakeError):
    retry = Retry.NOW


class PublishRefused(LakeError):
    retry = Retry.NOW
