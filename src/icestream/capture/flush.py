"""The durability step: decode, encode, announce, upload, claim. What comes back is the receipt.

A crash after any of these leaves the log as it was before the flush, or as it is after it:

    announced   files that may never come; retention forgets them
    uploaded    files nobody refers to; retention deletes them
    claimed     durable; the source is told with the next feedback, and resends nothing it was told of
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from icestream.capture.batch import Batch, Segment
from icestream.capture.handover import Handover
from icestream.capture.identify import Identifier
from icestream.capture.metrics import CaptureMetrics
from icestream.log.documents import as_documents
from icestream.log.format import encode, staged_table
from icestream.log.writer import Attempt, EncodedRows, LogWriter
from icestream.model.change import StagingFormat
from icestream.model.ids import new_id
from icestream.model.position import Lsn
from icestream.model.receipt import Receipt
from icestream.model.table import Relation, StagedFile
from icestream.observe.steps import reached
from icestream.sources.postgres.columnar import decode_buffer
from icestream.state.log_index import LogIndex

_ENCODERS: Final = 2  # NumPy and Arrow work outside of Python's lock, so two keep up with any walsender
_UPLOAD_BYTES: Final = 16 * 1024 * 1024  # encoded files that are held before they are uploaded together


class Flusher:
    """Makes batches durable, one after the other; the next claim builds on the position of the last."""

    def __init__(
        self,
        writer: LogWriter,
        index: LogIndex,
        identifier: Identifier,
        *,
        epoch: str,
        flushed: Lsn,
        attempt: Attempt,
        metrics: CaptureMetrics,
        staging_format: StagingFormat = StagingFormat.COLUMNS,
    ) -> None:
        self._writer = writer
        self._index = index
        self._identifier = identifier
        self._epoch = epoch
        self._flushed = flushed
        self._attempt = attempt
        self._metrics = metrics
        self._format = staging_format
        self._encoders = ThreadPoolExecutor(_ENCODERS, thread_name_prefix="encoder")

    def run(self, handover: Handover) -> None:
        """The thread's main function: until the hand-over is closed and empty, or a flush fails for good."""
        try:
            while (batch := handover.take()) is not None:
                handover.done(batch.size, self.flush(batch))
        except BaseException as err:  # noqa: BLE001
            handover.fail(err)
            handover.abandon()

    def flush(self, batch: Batch) -> Receipt:
        """When it returns, every transaction of the batch is in the log."""
        began = time.monotonic()
        files: list[StagedFile] = []
        for group in _groups(self._encode_all(batch)):
            files += self._writer.stage(group)
        receipt = self._claim(files, batch.position)
        self._metrics.flushed(
            rows=sum(file.record_count for file in files),
            files=len(files),
            size=sum(file.byte_size for file in files),
            seconds=time.monotonic() - began,
            position=receipt.position,
        )
        return receipt

    def close(self) -> None:
        self._encoders.shutdown()

    def _encode_all(self, batch: Batch) -> Iterator[EncodedRows]:
        """In order, and never more than a few at a time: a segment is large."""
        running: deque[Future[EncodedRows]] = deque()
        for segment in batch.segments():
            told = segment.rows.relation
            relation = self._identifier.identify(told, is_newest=batch.newest.get(told.oid) is told)
            running.append(self._encoders.submit(encoded, segment, relation, self._format))
            if len(running) == _ENCODERS:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()

    def _claim(self, files: list[StagedFile], position: Lsn) -> Receipt:
        claim_id = new_id()
        receipts: list[Receipt] = []

        def claim() -> None:
            expected = self._flushed
            receipts.append(
                self._index.claim(files, epoch=self._epoch, expected=expected, position=position, claim_id=claim_id)
            )

        self._attempt(claim)
        self._flushed = position
        reached("offsets claimed")
        return receipts[0]


def encoded(segment: Segment, relation: Relation, staging_format: StagingFormat) -> EncodedRows:
    rows = segment.rows
    batch = decode_buffer(relation, rows.data, rows.message_sizes(), in_stream=rows.in_stream)
    table = staged_table(batch, relation, lsn=segment.ends(), ts=segment.times(), xid=segment.xids())
    return EncodedRows(
        table=rows.table,
        relation=relation,
        data=encode(as_documents(table, relation) if staging_format is StagingFormat.JSON else table),
        last_lsn=segment.last_end,
        first_commit_at=segment.first_time / 1_000_000,
        profile=batch.profile,
        format=staging_format,
    )


def _groups(files: Iterable[EncodedRows]) -> Iterator[list[EncodedRows]]:
    """Files to upload together: few enough to hold, many enough to share one round trip of the announcement."""
    group: list[EncodedRows] = []
    size = 0
    for file in files:
        group.append(file)
        size += file.data.size
        if size >= _UPLOAD_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
