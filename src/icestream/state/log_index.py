"""The writing side of the log: the one transaction that makes a flush durable, and the receipt for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

import msgspec

from icestream.errors import ClaimRefused, StateUnavailable
from icestream.model.ids import new_id
from icestream.model.position import Lsn
from icestream.model.receipt import Receipt
from icestream.model.table import StagedFile
from icestream.observe.logs import fields
from icestream.state.database import Database, Transaction

_FLUSHED = """
SELECT epoch::text, lsn, claim_id::text FROM {schema}.flushed_lsn WHERE pipeline = %(pipeline)s
"""
# Waits for a claim whose client is gone but whose transaction is still open on the server.
_FLUSHED_SETTLED = _FLUSHED + "FOR SHARE"
_INTEND = """
INSERT INTO {schema}.staged_intent (path, pipeline)
SELECT unnest(%(paths)s::text[]), %(pipeline)s
ON CONFLICT (path) DO NOTHING
"""
_MOVE_POSITION = """
UPDATE {schema}.flushed_lsn
SET lsn = %(position)s, claim_id = %(claim_id)s, updated_at = now()
WHERE pipeline = %(pipeline)s AND epoch = %(epoch)s AND lsn = %(expected)s
"""
_TAKE_INTENTS = "DELETE FROM {schema}.staged_intent WHERE pipeline = %(pipeline)s AND path = ANY(%(paths)s)"
_ADD_RELATIONS = """
INSERT INTO {schema}.relation_version (pipeline, table_name, version, relation)
SELECT %(pipeline)s, * FROM unnest(%(tables)s::text[], %(versions)s::text[], %(relations)s::jsonb[])
ON CONFLICT (pipeline, table_name, version) DO NOTHING
"""
_TAKE_OFFSETS = """
INSERT INTO {schema}.log_seq AS seq (pipeline, table_name, next_offset, next_byte, relation_version)
SELECT %(pipeline)s, * FROM unnest(%(tables)s::text[], %(records)s::bigint[], %(sizes)s::bigint[], %(versions)s::text[])
ON CONFLICT (pipeline, table_name) DO UPDATE
SET next_offset = seq.next_offset + excluded.next_offset,
    next_byte = seq.next_byte + excluded.next_byte,
    relation_version = excluded.relation_version
RETURNING table_name, next_offset, next_byte
"""
_ADD_ENTRIES = """
INSERT INTO {schema}.log_index
    (pipeline, epoch, claim_id, table_name, start_offset, end_offset, claim_end, s3_path, record_count, byte_size,
     start_byte, flushable_lsn, relation_version, profile, first_commit_at)
SELECT %(pipeline)s, %(epoch)s::uuid, %(claim_id)s::uuid, table_name, start_offset, end_offset, claim_end, s3_path,
       record_count, byte_size, start_byte, flushable_lsn, relation_version, profile,
       coalesce(to_timestamp(first_commit_at), now())
FROM jsonb_to_recordset(%(entries)s::jsonb) AS entry (
    table_name text, start_offset bigint, end_offset bigint, claim_end bigint, s3_path text, record_count int,
    byte_size bigint, start_byte bigint, flushable_lsn bigint, relation_version text, profile jsonb,
    first_commit_at float8)
"""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Flushed:
    """How far the log reaches: every commit that ends at or before `position` is in it."""

    epoch: str
    position: Lsn
    claim_id: str | None


@dataclass(frozen=True)
class _Claim:
    claim_id: str
    epoch: str
    expected: Lsn
    position: Lsn
    files: Sequence[StagedFile]


class LogIndex:
    """One capture writes at a time: every claim names the position it builds on, and is refused if that has moved."""

    def __init__(self, db: Database, pipeline: str, *, patience_s: float = 15.0) -> None:
        """`patience_s`: how long to keep asking for the outcome of a claim whose connection broke."""
        self._db = db
        self._pipeline = pipeline
        self._patience_s = patience_s

    def flushed(self) -> Flushed | None:
        """None before the first epoch."""
        row = self._db.fetch_one(_FLUSHED, {"pipeline": self._pipeline})
        return Flushed(row["epoch"], Lsn(row["lsn"]), row["claim_id"]) if row else None

    def intend(self, paths: Iterable[str]) -> None:
        """Announces uploads, so that a crash leaves no file unknown; called before the first byte. May be repeated.

        After a refused claim, announcing the files again hands them to retention.
        """
        self._db.execute(_INTEND, {"pipeline": self._pipeline, "paths": list(paths)})

    def claim(
        self,
        files: Sequence[StagedFile],
        *,
        epoch: str,
        expected: Lsn,
        position: Lsn,
        claim_id: str | None = None,
    ) -> Receipt:
        """Gives the files their offsets and moves the flushed position from `expected` to `position`, all or nothing.

        Files of one table follow each other in the order given. When it returns, all is durable. It raises
        ClaimRefused if the position or the epoch is another one by now, or if retention has taken a file;
        StateUnavailable if the claim was not made or its outcome could not be learned: then it may be repeated with
        the same `claim_id`, and gives the receipt of the first attempt if that had succeeded.
        """
        if position < expected:
            raise ClaimRefused(f"the flushed position cannot go back from {expected} to {position}")
        claim = _Claim(claim_id or new_id(), epoch, expected, position, files)
        try:
            with self._db.transaction() as tx:
                self._write(tx, claim)
        except StateUnavailable as err:
            self._settle(claim, err)
        return Receipt(position, claim.claim_id)

    def advance(self, *, epoch: str, expected: Lsn, position: Lsn) -> Receipt:
        """Moves the flushed position over a stretch with no changes of ours; otherwise as `claim`."""
        return self.claim((), epoch=epoch, expected=expected, position=position)

    def _write(self, tx: Transaction, claim: _Claim) -> None:
        if not self._move_position(tx, claim) or not claim.files:
            return
        paths = [file.path for file in claim.files]
        taken = tx.execute(_TAKE_INTENTS, {"pipeline": self._pipeline, "paths": paths})
        if taken != len(paths):
            raise ClaimRefused(
                f"{len(paths) - taken} of {len(paths)} staged files were given up by retention before the claim"
            )
        self._add_relations(tx, claim)
        self._add_entries(tx, claim)

    def _move_position(self, tx: Transaction, claim: _Claim) -> bool:
        """False if this very claim is committed already."""
        values = {
            "pipeline": self._pipeline,
            "epoch": claim.epoch,
            "expected": int(claim.expected),
            "position": int(claim.position),
            "claim_id": claim.claim_id,
        }
        if tx.execute(_MOVE_POSITION, values) == 1:
            return True
        stored = tx.fetch_one(_FLUSHED, values)
        if stored and stored["claim_id"] == claim.claim_id:
            return False
        found = f"{Lsn(stored['lsn'])} in epoch {stored['epoch']}" if stored else "nothing"
        raise ClaimRefused(
            f"another capture has moved the log of pipeline '{self._pipeline}': expected {claim.expected} in epoch"
            f" {claim.epoch}, found {found}"
        )

    def _add_relations(self, tx: Transaction, claim: _Claim) -> None:
        shapes = {(file.table, file.relation.version): file.relation for file in claim.files}
        values = {
            "pipeline": self._pipeline,
            "tables": [table for table, _ in shapes],
            "versions": [version for _, version in shapes],
            "relations": [relation.to_json().decode() for relation in shapes.values()],
        }
        tx.execute(_ADD_RELATIONS, values)

    def _add_entries(self, tx: Transaction, claim: _Claim) -> None:
        ordered = sorted(claim.files, key=_table)  # stable: the order within a table stays
        by_table = {table: list(files) for table, files in groupby(ordered, key=_table)}
        values = {
            "pipeline": self._pipeline,
            "tables": list(by_table),
            "records": [sum(file.record_count for file in files) for files in by_table.values()],
            "sizes": [sum(file.byte_size for file in files) for files in by_table.values()],
            "versions": [files[-1].relation.version for files in by_table.values()],
        }
        entries: list[dict[str, object]] = []
        for end in tx.fetch(_TAKE_OFFSETS, values):
            entries += _entries(by_table[end["table_name"]], end["next_offset"], end["next_byte"])
        tx.execute(
            _ADD_ENTRIES,
            {
                "pipeline": self._pipeline,
                "epoch": claim.epoch,
                "claim_id": claim.claim_id,
                "entries": msgspec.json.encode(entries).decode(),
            },
        )

    def _settle(self, claim: _Claim, cause: StateUnavailable) -> None:
        """Asks until it is known whether the claim is committed; returns if it is."""
        give_up = time.monotonic() + self._patience_s
        for pause in _pauses():
            try:
                with self._db.transaction() as tx:
                    stored = tx.fetch_one(_FLUSHED_SETTLED, {"pipeline": self._pipeline})
            except StateUnavailable as err:
                if time.monotonic() + pause > give_up:
                    raise StateUnavailable(
                        f"the outcome of claim {claim.claim_id} is not known: the state database does not answer"
                    ) from err
                time.sleep(pause)
                continue
            if stored is None or stored["claim_id"] != claim.claim_id:
                raise StateUnavailable(f"claim {claim.claim_id} was not made") from cause
            log.info("claim found committed", extra=fields(claim_id=claim.claim_id, position=claim.position))
            return


def _table(file: StagedFile) -> str:
    return file.table


def _entries(files: Sequence[StagedFile], end_offset: int, end_byte: int) -> Iterator[dict[str, object]]:
    """Index rows of one table's files, which together end at `end_offset` and `end_byte`."""
    offset = end_offset - sum(file.record_count for file in files)
    byte = end_byte - sum(file.byte_size for file in files)
    for file in files:
        yield {
            "table_name": file.table,
            "start_offset": offset,
            "end_offset": offset + file.record_count,
            "claim_end": end_offset,
            "s3_path": file.path,
            "record_count": file.record_count,
            "byte_size": file.byte_size,
            "start_byte": byte,
            "flushable_lsn": int(file.last_lsn),
            "relation_version": file.relation.version,
            "profile": asdict(file.profile),
            "first_commit_at": file.first_commit_at,
        }
        offset += file.record_count
        byte += file.byte_size


def _pauses() -> Iterator[float]:
    pause = 0.1
    while True:
        yield pause
        pause = min(pause * 2, 2.0)
