"""Where files lie: a local folder, or whatever a URI names. Staged ones are put whole; others are streamed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from icestream.errors import StorageError

if TYPE_CHECKING:
    from pyarrow import fs
    from typing_extensions import Buffer

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
S3_SCHEMES: Final = ("s3://", "s3a://", "s3n://")


class Store(Protocol):
    """Whole files under relative paths. Safe to use from many threads. Raises StorageError."""

    def put(self, path: str, data: Buffer) -> None:
        """The file is durable when it returns, and never seen half written. May be repeated."""

    def delete(self, path: str) -> None:
        """A file that is not there is fine."""

    def exists(self, path: str) -> bool: ...

    def uri(self, path: str) -> str:
        """How Spark names the file."""


def open_store(root: str, properties: Mapping[str, str] | None = None) -> Store:
    """The store at a local folder or URI. `properties`: Iceberg's `s3.*` and `client.region`, for object stores."""
    folder = local_path(root)
    return RemoteStore(root, properties or {}) if folder is None else LocalStore(Path(folder).absolute())


def local_path(uri: str) -> str | None:
    """The path of a file on this machine's disk; None if the URI leads elsewhere."""
    path = re.sub(r"^file:(//)?(?=/)", "", uri)
    return None if _SCHEME.match(path) else path


def open_filesystem(uri: str, properties: Mapping[str, str]) -> tuple[fs.FileSystem, str]:
    """For those who write in a stream: where `uri` lies, and its path there. Raises StorageError."""
    from pyarrow import ArrowInvalid, fs

    folder = local_path(uri)
    if folder is not None:
        return fs.LocalFileSystem(), folder.rstrip("/")
    try:
        if uri.startswith(S3_SCHEMES):
            return _s3(properties), uri.partition("://")[2].rstrip("/")
        files, base = fs.FileSystem.from_uri(uri)
    except (OSError, ArrowInvalid, ValueError) as err:
        raise StorageError(f"the folder {uri} cannot be opened", hint="check `sink.warehouse`") from err
    return files, base.rstrip("/")


class LocalStore:
    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, path: str, data: Buffer) -> None:
        target = self._root / path
        unfinished = _unfinished(target)
        try:
            _make_folder(target.parent)
            _write_durably(unfinished, data)
            unfinished.replace(target)
            _sync_folder(target.parent)
        except OSError as err:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise self._failure("written", path, err) from err

    def delete(self, path: str) -> None:
        try:
            _unfinished(self._root / path).unlink(missing_ok=True)
            (self._root / path).unlink(missing_ok=True)
        except OSError as err:
            raise self._failure("deleted", path, err) from err

    def exists(self, path: str) -> bool:
        return (self._root / path).exists()

    def uri(self, path: str) -> str:
        return f"file://{self._root / path}"

    def _failure(self, what: str, path: str, err: OSError) -> StorageError:
        return StorageError(
            f"staged file {self._root / path} cannot be {what}: {err.strerror}",
            hint=f"look at the space and the permissions of {self._root}",
        )


class RemoteStore:
    """An object store: a file appears whole when its upload is complete."""

    def __init__(self, root: str, properties: Mapping[str, str]) -> None:
        self._root = root.rstrip("/")
        self._files, self._base = open_filesystem(self._root, properties)

    def put(self, path: str, data: Buffer) -> None:
        try:
            with self._files.open_output_stream(f"{self._base}/{path}") as out:
                out.write(data)
        except OSError as err:
            raise self._failure("written", path) from err

    def delete(self, path: str) -> None:
        try:
            self._files.delete_file(f"{self._base}/{path}")
        except FileNotFoundError:
            return
        except OSError as err:
            raise self._failure("deleted", path) from err

    def exists(self, path: str) -> bool:
        try:
            return bool(self._files.get_file_info(f"{self._base}/{path}").is_file)
        except OSError as err:
            raise self._failure("looked up", path) from err

    def uri(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _failure(self, what: str, path: str) -> StorageError:
        return StorageError(
            f"staged file {self.uri(path)} cannot be {what}", hint="check `sink.warehouse` and its credentials"
        )


def _s3(properties: Mapping[str, str]) -> fs.S3FileSystem:
    from pyarrow import fs

    scheme, separator, address = properties.get("s3.endpoint", "").rpartition("://")
    given = {
        "scheme": scheme if separator else None,
        "endpoint_override": address,
        "access_key": properties.get("s3.access-key-id"),
        "secret_key": properties.get("s3.secret-access-key"),
        "session_token": properties.get("s3.session-token"),
        "region": properties.get("client.region") or properties.get("s3.region"),
    }
    return fs.S3FileSystem(**{name: value for name, value in given.items() if value})


def _unfinished(target: Path) -> Path:
    """Always the same name: what a killed process left goes with the file."""
    return target.with_name(f".{target.name}.part")


def _make_folder(folder: Path) -> None:
    """Creates it and its parents so that they survive a power cut, as a synced file inside them would."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


def _write_durably(path: Path, data: Buffer) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
