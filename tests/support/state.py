"""A migrated state database, and values to fill it with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from icestream.model.ids import new_epoch, new_id
from icestream.model.position import Lsn
from icestream.model.receipt import Receipt
from icestream.model.table import Column, Profile, Relation, StagedFile
from icestream.state.database import Database
from icestream.state.identity import Identity
from icestream.state.log_index import LogIndex
from icestream.state.migrate import migrate

SCHEMA = "_pg2iceberg"
PIPELINE = "shop"
ORDERS = Relation(16400, "public", "orders", "d", (Column("id", 23, is_key=True), Column("note", 25)))
WIDER_ORDERS = Relation(16400, "public", "orders", "d", (*ORDERS.columns, Column("paid", 16)))


@pytest.fixture
def state(database: str) -> Iterator[Database]:
    db = Database(database, SCHEMA)
    migrate(db)
    yield db
    db.close()


@pytest.fixture
def log(state: Database) -> LogDriver:
    """The log of a pipeline whose first epoch has begun."""
    return LogDriver(state)


class LogDriver:
    """Plays a capture: keeps the epoch and the flushed position between claims."""

    def __init__(
        self, db: Database, pipeline: str = PIPELINE, *, slot: str = "shop_slot", cluster: int = 2**64 - 5
    ) -> None:
        self.index = LogIndex(db, pipeline)
        self.identity = Identity(db, pipeline)
        self._slot, self._cluster = slot, cluster
        self.epoch = ""
        self.position = Lsn(0)
        self.begin_epoch(Lsn(1000))

    def begin_epoch(self, position: Lsn) -> None:
        self.epoch, self.position = new_epoch(), position
        self.identity.begin_epoch(
            epoch=self.epoch,
            system_identifier=self._cluster,
            timeline=1,
            slot_name=self._slot,
            publication_name="shop_pub",
            publication_oid=17000,
            position=position,
        )

    def claim(self, *files: StagedFile, claim_id: str | None = None) -> Receipt:
        """Announces and claims the files, 100 positions further on."""
        self.index.intend(file.path for file in files)
        after = Lsn(self.position + 100)
        receipt = self.index.claim(files, epoch=self.epoch, expected=self.position, position=after, claim_id=claim_id)
        self.position = receipt.position
        return receipt


def staged(
    table: str = "public.orders", records: int = 10, *, size: int = 1000, relation: Relation = ORDERS
) -> StagedFile:
    return StagedFile(
        table=table,
        path=f"{PIPELINE}/{table}/{new_id()}.parquet",
        record_count=records,
        byte_size=size,
        last_lsn=1100,
        relation=relation,
        profile=Profile(inserts=records),
        first_commit_at=1_700_000_000.25,
    )
