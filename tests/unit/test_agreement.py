"""State and source: which pairs can both be true."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from icestream.capture.agreement import Evidence, disagreement
from icestream.errors import SourceUnavailable
from icestream.model.position import Lsn
from icestream.sources.postgres.slot import Slot, System
from icestream.state.identity import PipelineIdentity
from icestream.state.log_index import Flushed

IDENTITY = PipelineIdentity("e1", 42, 1, "shop", "shop_pub", 7, datetime(2026, 1, 1, tzinfo=UTC))
SLOT = Slot("shop", "pgoutput", "db", False, None, Lsn(900), Lsn(800), "reserved", None)
HEALTHY = Evidence(IDENTITY, Flushed("e1", Lsn(1000), None), System(42, 1, Lsn(2000)), SLOT, publication_oid=7)


def test_a_log_ahead_of_its_slot_is_healthy() -> None:
    """A claim comes before its acknowledgement."""
    assert disagreement(HEALTHY) is None
    assert disagreement(replace(HEALTHY, slot=replace(SLOT, confirmed=Lsn(1000)))) is None


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (replace(HEALTHY, flushed=None), "how far"),
        (replace(HEALTHY, flushed=Flushed("e2", Lsn(1000), None)), "epoch e2"),
        (replace(HEALTHY, slot=None), "'shop' is gone"),
        (replace(HEALTHY, slot=replace(SLOT, wal_status="lost")), r"lost its WAL \(lost\)"),
        (replace(HEALTHY, slot=replace(SLOT, invalidation="wal_removed")), "wal_removed"),
        (replace(HEALTHY, slot=replace(SLOT, confirmed=Lsn(1001))), "older copy"),
        (replace(HEALTHY, publication_oid=None), "publication 'shop_pub' is gone"),
        (replace(HEALTHY, publication_oid=8), "publication 'shop_pub' was dropped and created again"),
        (replace(HEALTHY, system=System(42, 2, Lsn(2000))), "timeline 1 to 2"),
        (replace(HEALTHY, system=System(42, 1, Lsn(999))), "source was restored"),
    ],
)
def test_what_cannot_both_be_true_is_said(evidence: Evidence, words: str) -> None:
    reason = disagreement(evidence)
    assert reason is not None and re.search(words, reason)


def test_a_standby_that_still_replays_is_waited_for() -> None:
    behind = replace(HEALTHY, system=System(42, 1, Lsn(999), is_standby=True))
    with pytest.raises(SourceUnavailable):
        disagreement(behind)
    assert disagreement(replace(behind, slot=None)) is not None, "time does not bring a slot back"
