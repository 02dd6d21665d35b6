"""Staged files on their way into the store: named, announced, uploaded. They count only once they are claimed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import quote

from icestream.log.store import Store
from icestream.model.change import StagingFormat
from icestream.model.ids import new_id
from icestream.model.table import Profile, Relation, StagedFile
from icestream.observe.steps import reached

if TYPE_CHECKING:
    import pyarrow as pa

Attempt: TypeAlias = Callable[[Callable[[], None]], None]

_PARALLEL_UPLOADS: Final = 4
_LONGEST_NAME: Final = 200  # file systems end at 255
_EXTENSIONS: Final = {StagingFormat.COLUMNS: ".parquet", StagingFormat.JSON: ".json.parquet"}


@dataclass(frozen=True)
class EncodedRows:
    """The bytes of a file to be staged, and what is in it."""

    table: str
    relation: Relation
    data: pa.Buffer
    last_lsn: int
    first_commit_at: float  # seconds since 1970
    profile: Profile = field(default_factory=Profile)
    format: StagingFormat = StagingFormat.COLUMNS


def once(step: Callable[[], None]) -> None:
    step()


class LogWriter:
    """Stages files of one pipeline.

    `intend` announces paths durably. `attempt` runs a step that may fail for a while, and decides how often.
    """

    def __init__(
        self, store: Store, pipeline: str, intend: Callable[[Sequence[str]], None], *, attempt: Attempt = once
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._intend = intend
        self._attempt = attempt
        self._uploads = ThreadPoolExecutor(_PARALLEL_UPLOADS, thread_name_prefix="upload")

    def stage(self, files: Sequence[EncodedRows]) -> list[StagedFile]:
        """Announces all, then uploads all; when it returns, all are durable. Raises StorageError, StateUnavailable.

        After a failure the announced files are left to retention; a repeated call uses new names.
        """
        staged = [self._staged(rows) for rows in files]
        self._attempt(lambda: self._intend([file.path for file in staged]))
        reached("intent noted")
        self._upload_all([(file.path, rows.data) for file, rows in zip(staged, files, strict=True)])
        return staged

    def close(self) -> None:
        self._uploads.shutdown()

    def _upload_all(self, uploads: Sequence[tuple[str, pa.Buffer]]) -> None:
        running = [self._uploads.submit(self._upload, path, data) for path, data in uploads]
        for upload in running:
            upload.result()

    def _upload(self, path: str, data: pa.Buffer) -> None:
        self._attempt(lambda: self._store.put(path, data))
        reached("file uploaded")

    def _staged(self, rows: EncodedRows) -> StagedFile:
        return StagedFile(
            table=rows.table,
            path=staged_path(self._pipeline, rows.table, rows.format),
            record_count=rows.profile.records,
            byte_size=rows.data.size,
            last_lsn=rows.last_lsn,
            relation=rows.relation,
            profile=rows.profile,
            first_commit_at=rows.first_commit_at,
        )


def staged_path(pipeline: str, table: str, staging_format: StagingFormat = StagingFormat.COLUMNS) -> str:
    """A new path for a file of this table, relative to the staging root; never the same twice."""
    return f"{folder_name(pipeline)}/{folder_name(table)}/{new_id()}{_EXTENSIONS[staging_format]}"


def format_of(path: str) -> StagingFormat:
    """A log may hold files of both: the name of each tells."""
    return StagingFormat.JSON if path.endswith(_EXTENSIONS[StagingFormat.JSON]) else StagingFormat.COLUMNS


def folder_name(name: str) -> str:
    """Percent-encoded, so that any name is one harmless folder; a very long one is cut and told apart by its hash."""
    encoded = quote(name, safe="")
    if not encoded.strip("."):
        encoded = encoded.replace(".", "%2E")
    if len(encoded) <= _LONGEST_NAME:
        return encoded
    return f"{encoded[:_LONGEST_NAME]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"
