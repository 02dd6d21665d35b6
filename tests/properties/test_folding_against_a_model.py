"""Random histories of rows, cut into random batches: the table always equals the model.

Every example runs many independent histories (lanes, with keys of their own) through the same batches, since starting
a Spark job costs more than what it does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from icestream.lake.session import Lake
from icestream.model.ids import new_id
from icestream.model.table import Column, Relation
from support.applying import AppliedTable
from support.staging import Change, Text

_INT4, _TEXT = 23, 25
_LANES = 40
_KEYS = 4
_COLUMNS = ("id", "a", "big", "huge")


def _relation(identity: str) -> Relation:
    full = identity == "f"
    columns = tuple(Column(name, _INT4 if name == "id" else _TEXT, -1, full or name == "id") for name in _COLUMNS)
    return Relation(1, "public", "t", identity, columns)


@dataclass
class Model:
    """A table in PostgreSQL and what its changes look like in the stream."""

    full: bool
    rows: dict[int, dict[str, str | None]] = field(default_factory=dict)
    written: int = 0

    def insert(self, key: int) -> list[Change]:
        if key in self.rows:
            return []
        self.rows[key] = {"id": str(key), "a": self._value(), "big": self._value(), "huge": None}
        return [Change("I", new=dict(self.rows[key]))]

    def delete(self, key: int) -> list[Change]:
        if key not in self.rows:
            return []
        return [Change("D", old=self._old(self.rows.pop(key)))]

    def update(self, key: int, to: int, sent: tuple[bool, bool]) -> list[Change]:
        if key not in self.rows or (to != key and to in self.rows):
            return []
        before = self.rows.pop(key)
        change, after = self._changed(before, to, sent)
        self.rows[to] = after
        return [change]

    def rotate(self, keys: tuple[int, ...], sent: tuple[bool, bool]) -> list[Change]:
        """Keys change places under a deferrable constraint: for a moment two rows have the same key."""
        if not self.full or len(set(keys)) < len(keys) or any(key not in self.rows for key in keys):
            return []
        places = list(zip(keys, (*keys[1:], keys[0]), strict=True))
        moved, changes = {}, []
        for key, to in places:
            change, moved[to] = self._changed(self.rows[key], to, sent)
            changes.append(change)
        self.rows.update(moved)
        return changes

    def _changed(
        self, before: dict[str, str | None], to: int, sent: tuple[bool, bool]
    ) -> tuple[Change, dict[str, str | None]]:
        after = {**before, "id": str(to), "a": self._value()}
        for name, is_sent in zip(("big", "huge"), sent, strict=True):
            if is_sent:
                after[name] = self._value()
        if self.full:
            return Change("U", new=dict(after), old=dict(before)), after
        kept = tuple(n for n, is_sent in zip(("big", "huge"), sent, strict=True) if not is_sent and before[n])
        new: Text = {name: None if name in kept else value for name, value in after.items()}
        old = self._old(before) if before["id"] != str(to) else None
        return Change("U", new=new, old=old, unchanged=kept), after

    def _old(self, row: dict[str, str | None]) -> Text:
        return dict(row) if self.full else {"id": row["id"]}

    def _value(self) -> str:
        self.written += 1
        return f"v{self.written}"


_key = st.integers(0, _KEYS - 1)
_sent = st.tuples(st.booleans(), st.booleans())
_step = st.one_of(
    st.tuples(st.just("insert"), _key),
    st.tuples(st.just("update"), _key, _sent),
    st.tuples(st.just("move"), _key, _key, _sent),
    st.tuples(st.just("delete"), _key),
    st.tuples(st.just("rotate"), st.lists(_key, min_size=2, max_size=3, unique=True).map(tuple), _sent),
)
_lane = st.lists(_step, min_size=4, max_size=14)


def _changes(model: Model, lane: int, step: tuple[Any, ...]) -> list[Change]:
    def at(key: int) -> int:
        return lane * 100 + key

    match step:
        case ("insert", key):
            return model.insert(at(key))
        case ("delete", key):
            return model.delete(at(key))
        case ("update", key, sent):
            return model.update(at(key), at(key), sent)
        case ("move", key, to, sent):
            return model.update(at(key), at(to), sent)
        case ("rotate", keys, sent):
            return model.rotate(tuple(at(key) for key in keys), sent)
    raise AssertionError(step)


def _transactions(model: Model, lanes: list[list[tuple[Any, ...]]]) -> list[list[Change]]:
    """All lanes' steps in turn; what one step changes belongs to one transaction."""
    transactions = []
    for turn in range(max(map(len, lanes))):
        for number, lane in enumerate(lanes):
            changes = _changes(model, number, lane[turn]) if turn < len(lane) else []
            if changes:
                transactions.append(changes)
    return transactions


@pytest.mark.parametrize("identity", ["d", "f"])
@settings(
    max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(data=st.data())
def test_random_histories_cut_into_random_batches_give_the_models_rows(
    lake: Lake, tmp_path: Path, identity: str, data: st.DataObject
) -> None:
    model = Model(full=identity == "f")
    lanes = data.draw(st.lists(_lane, min_size=_LANES, max_size=_LANES))
    transactions = _transactions(model, lanes)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(transactions)), max_size=2)) | {len(transactions)})
    table = AppliedTable(lake, tmp_path, "p" + new_id().replace("-", ""), _relation(identity), primary_key=("id",))
    lsn = start = 0
    for cut in cuts:
        batch = []
        for transaction in transactions[start:cut]:
            lsn += 10
            batch += [Change(c.op, c.new, c.old, c.unchanged, lsn) for c in transaction]
        if batch:
            table.apply(batch, files=data.draw(st.integers(1, 3)))
        start = cut
    expected = [(int(row["id"] or ""), row["a"], row["big"], row["huge"]) for _, row in sorted(model.rows.items())]
    found = table.rows()
    assert set(found) - set(expected) == set(), "rows that should not be there"
    assert found == expected
