"""Which cluster, slot and epoch a pipeline belongs to: what begins, what ends with it, what stays."""

from __future__ import annotations

import pytest

from icestream.errors import ClaimRefused
from icestream.model.ids import new_epoch
from icestream.model.position import Lsn
from icestream.model.table import TableName, Target
from icestream.state.database import Database
from icestream.state.identity import Identity
from icestream.state.log_entries import LogEntries
from icestream.state.retention import Retention
from icestream.state.tables import TableDefinition, Tables
from support.state import PIPELINE, LogDriver, staged

CLUSTER = 2**64 - 5  # beyond a signed bigint
ORDERS = "public.orders"


def begin(identity: Identity, epoch: str, *, position: int = 1000, slot: str = "shop_slot") -> None:
    identity.begin_epoch(
        epoch=epoch,
        system_identifier=CLUSTER,
        timeline=3,
        slot_name=slot,
        publication_name="shop_pub",
        publication_oid=77,
        position=Lsn(position),
    )


@pytest.fixture
def identity(state: Database) -> Identity:
    return Identity(state, PIPELINE)


def test_before_the_first_epoch_nothing_is_known(identity: Identity) -> None:
    assert identity.load() is None


def test_what_was_begun_is_what_is_loaded(identity: Identity) -> None:
    epoch = new_epoch()
    begin(identity, epoch)
    found = identity.load()
    assert found is not None
    assert (found.epoch, found.system_identifier, found.timeline) == (epoch, CLUSTER, 3)
    assert (found.slot_name, found.publication_name) == ("shop_slot", "shop_pub")


def test_pipelines_do_not_see_each_other(state: Database, identity: Identity) -> None:
    begin(identity, new_epoch())
    other = Identity(state, "other")
    other.intend_slot("other_slot", CLUSTER)
    assert other.load() is None
    assert not identity.intends_slot("other_slot", CLUSTER)


def test_an_intent_is_for_one_slot_of_one_cluster_and_the_newest_counts(identity: Identity) -> None:
    identity.intend_slot("a", CLUSTER)
    identity.intend_slot("b", CLUSTER)
    identity.intend_slot("b", CLUSTER)
    assert identity.intends_slot("b", CLUSTER)
    assert not identity.intends_slot("a", CLUSTER)
    assert not identity.intends_slot("b", 1)


def test_an_epoch_ends_the_intent(identity: Identity) -> None:
    identity.intend_slot("shop_slot", CLUSTER)
    begin(identity, new_epoch())
    assert not identity.intends_slot("shop_slot", CLUSTER)


def test_beginning_the_same_epoch_again_changes_nothing(identity: Identity, log: LogDriver) -> None:
    log.claim(staged())
    before = identity.load()
    begin(identity, log.epoch, position=5, slot="another")
    assert identity.load() == before
    flushed = log.index.flushed()
    assert flushed is not None and flushed.position == log.position


def test_a_new_epoch_empties_the_log_and_leaves_its_files_to_retention(state: Database, log: LogDriver) -> None:
    file = staged()
    log.claim(file)
    log.begin_epoch(Lsn(9000))
    assert LogEntries(state, PIPELINE).extent(ORDERS).next_offset == 0
    assert Retention(state, PIPELINE).garbage() == [file.path]
    flushed = log.index.flushed()
    assert flushed is not None and (flushed.epoch, flushed.position) == (log.epoch, Lsn(9000))


def test_a_claim_of_the_epoch_before_is_refused(state: Database, log: LogDriver) -> None:
    late = LogDriver(state)
    log.begin_epoch(Lsn(2000))
    with pytest.raises(ClaimRefused):
        late.claim(staged())


def test_demands_for_a_copy_stay_but_their_positions_do_not(state: Database, log: LogDriver) -> None:
    tables = Tables(state, PIPELINE, "default")
    tables.sync([TableDefinition(Target("public", "orders"), TableName("public", "orders"), 16400)])
    log.claim(staged())
    tables.request_copy(ORDERS)
    assert tables.all()[0].requested_lsn == log.position
    log.begin_epoch(Lsn(10))
    assert tables.all()[0].requested_lsn == Lsn(1)
