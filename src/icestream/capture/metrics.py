"""What capture tells those who watch it."""

from __future__ import annotations

from typing import Protocol

from icestream.model.position import Lsn


class CaptureMetrics(Protocol):
    """Called from capture's threads; must be quick and must not raise."""

    def connected(self) -> None:
        """A replication stream has begun."""

    def received(self, size: int) -> None:
        """So many bytes came from the stream."""

    def flushed(self, *, rows: int, files: int, size: int, seconds: float, position: Lsn) -> None:
        """A claim is durable; `size` is that of its files."""

    def acknowledged(self, position: Lsn) -> None: ...

    def failed(self, error: BaseException) -> None:
        """The stream, or a step of a flush, failed and is tried again."""


class NoMetrics:
    def connected(self) -> None:
        pass

    def received(self, size: int) -> None:
        pass

    def flushed(self, *, rows: int, files: int, size: int, seconds: float, position: Lsn) -> None:
        pass

    def acknowledged(self, position: Lsn) -> None:
        pass

    def failed(self, error: BaseException) -> None:
        pass
