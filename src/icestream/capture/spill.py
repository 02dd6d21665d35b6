"""The part of a transaction that does not fit in memory."""

from __future__ import annotations

import struct
import tempfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from icestream.capture.rows import Rows
from icestream.errors import StorageError

_BLOCK: Final = struct.Struct("=IIQ")  # part, number of rows, bytes


@dataclass(frozen=True)
class Block:
    part: int
    data: bytes
    sizes: array[int]


class Spill:
    """Blocks of rows in a local file without a name: it vanishes when it is closed, also when the process is killed.

    Written by the receiver, then read once by the flusher; never both at the same time.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        except OSError as err:
            raise self._failure(folder, err) from err
        self._folder = folder

    def write(self, part: int, rows: Rows) -> None:
        try:
            self._file.write(_BLOCK.pack(part, len(rows), len(rows.data)))
            self._file.write(rows.sizes)
            self._file.write(rows.data)
        except OSError as err:
            raise self._failure(self._folder, err) from err

    def flush(self) -> None:
        """Once it returns, reading can no longer fail for want of space."""
        try:
            self._file.flush()
        except OSError as err:
            raise self._failure(self._folder, err) from err

    def blocks(self) -> Iterator[Block]:
        """In the order in which they were written."""
        try:
            self._file.seek(0)
            while header := self._file.read(_BLOCK.size):
                part, count, size = _BLOCK.unpack(header)
                sizes = array("I")
                sizes.frombytes(self._file.read(count * sizes.itemsize))
                yield Block(part, self._file.read(size), sizes)
        except OSError as err:
            raise self._failure(self._folder, err) from err

    def close(self) -> None:
        self._file.close()

    @staticmethod
    def _failure(folder: Path, err: OSError) -> StorageError:
        return StorageError(
            f"a large transaction cannot be kept in {folder}: {err.strerror}", hint="free space in that folder"
        )
