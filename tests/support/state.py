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
_COLUMNS = """
SELECT table_name, column_name, udt_name, is_nullable = 'YES' OR column_default IS NOT NULL AS may_be_left_out
FROM information_schema.columns
WHERE table_schema = %(schema)s
"""
_OF_TYPE = {
    "timestamptz": "now",
    "text": "{owner}",
    "uuid": "00000000-0000-0000-0000-000000000001",
    "jsonb": "{{}}",
    "bool": "true",
}
_OF_COLUMN = {"state": "pending", "start_offset": "0"}  # where a constraint asks for more than the type
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


def columns_by_table(db: Database) -> dict[str, dict[str, str | None]]:
    """Of each table of the schema: the columns that a row needs, with a type each, and the others, without."""
    found: dict[str, dict[str, str | None]] = {}
    for row in db.fetch(_COLUMNS, {"schema": db.schema}):
        type_ = None if row["may_be_left_out"] else row["udt_name"]
        found.setdefault(row["table_name"], {})[row["column_name"]] = type_
    return found


def fill_every_table(db: Database, pipeline: str, group: str) -> None:
    """One row of this pipeline, and group where the table has one, in every table."""
    owner = f"{pipeline}/{group}"
    for table, columns in columns_by_table(db).items():
        if "pipeline" in columns:
            values = {
                name: _OF_COLUMN.get(name) or _OF_TYPE.get(type_, "1").format(owner=owner)
                for name, type_ in columns.items()
                if type_ is not None
            }
            values |= {"pipeline": pipeline} | ({"group_name": group} if "group_name" in columns else {})
            names, places = ", ".join(values), ", ".join(f"%({name})s" for name in values)
            db.execute(f"INSERT INTO {{schema}}.{table} ({names}) VALUES ({places}) ON CONFLICT DO NOTHING", values)


def tables_with_rows(db: Database, pipeline: str, group: str | None = None) -> set[str]:
    """Those that have a row of the pipeline; with a group, of that group."""
    wanted = {"pipeline": pipeline} | ({} if group is None else {"group_name": group})
    condition = " AND ".join(f"{name} = %({name})s" for name in wanted)
    return {
        table
        for table, columns in columns_by_table(db).items()
        if wanted.keys() <= columns.keys() and db.fetch(f"SELECT FROM {{schema}}.{table} WHERE {condition}", wanted)
    }
