"""Files of documents and files of columns are read alike."""

from __future__ import annotations

from pathlib import Path

from icestream.lake.session import Lake
from icestream.materialize.decode import read_staged
from icestream.materialize.shape import Shape
from icestream.model.change import StagingFormat
from icestream.model.table import Column, Relation, Target
from support.staging import Change, stage

_INT4, _TEXT = 23, 25
_NAMES = ["id", "v", "_old", "a,b", "Dotted.name", "quo\"te'`", "größe €"]
_LONG = "x" * 25_000_000  # more than what Jackson takes for one string, unless told otherwise


def relation(identity: str = "d") -> Relation:
    key = Column(_NAMES[0], _INT4, -1, True)
    others = (Column(name, _TEXT, -1, identity == "f") for name in _NAMES[1:])
    return Relation(1, "public", "t", identity, (key, *others))


def image(key: str, value: str | None, **others: str) -> dict[str, str | None]:
    return {**dict.fromkeys(_NAMES), "id": key, "v": value, **others}


CHANGES = [
    Change("I", new=image("1", 'tab\t "quoted" \\ ä€𝄞 \x01', **{"a,b": "1", "_old": "a column"}), lsn=1),
    Change("U", new=image("1", None), unchanged=("_old", "a,b"), lsn=2),
    Change("U", new=image("2", ""), old={"id": "1"}, lsn=3),
    Change("D", old={"id": "2"}, lsn=4),
    Change("T", lsn=5),
    Change("I", new=image("3", "null"), lsn=6),
]


def read(lake: Lake, root: Path, shape: Relation, *formats: StagingFormat) -> list[str]:
    entries = [stage(root, shape, CHANGES, start=100 * n, staging_format=kind) for n, kind in enumerate(formats)]
    frame = read_staged(
        lake.spark.newSession(), str(root), entries, shape, Shape.of(shape, Target("n", "t", primary_key=("id",)))
    )
    return sorted(repr(row.asDict(recursive=True)) for row in frame.collect())


def test_documents_and_columns_give_the_same_changes(lake: Lake, tmp_path: Path) -> None:
    both = {kind: read(lake, tmp_path, relation(), kind) for kind in StagingFormat}
    assert both[StagingFormat.JSON] == both[StagingFormat.COLUMNS]
    assert len(both[StagingFormat.JSON]) == len(CHANGES)


def test_a_full_identity_keeps_its_old_rows(lake: Lake, tmp_path: Path) -> None:
    both = {kind: read(lake, tmp_path, relation("f"), kind) for kind in StagingFormat}
    assert both[StagingFormat.JSON] == both[StagingFormat.COLUMNS]


def test_a_log_may_hold_files_of_both(lake: Lake, tmp_path: Path) -> None:
    mixed = read(lake, tmp_path, relation(), StagingFormat.COLUMNS, StagingFormat.JSON)
    assert mixed == read(lake, tmp_path, relation(), StagingFormat.JSON, StagingFormat.COLUMNS)
    assert len(mixed) == 2 * len(CHANGES)


def test_a_very_long_value_is_read_whole(lake: Lake, tmp_path: Path) -> None:
    shape = Relation(1, "public", "t", "d", (Column("id", _INT4, -1, True), Column("v", _TEXT)))
    changes = [Change("I", new={"id": "1", "v": _LONG}), Change("U", new={"id": "1", "v": _LONG}, unchanged=("v",))]
    entry = stage(tmp_path, shape, changes, start=0, staging_format=StagingFormat.JSON)
    frame = read_staged(lake.spark.newSession(), str(tmp_path), [entry], shape, Shape.of(shape, Target("n", "t")))
    rows = frame.selectExpr("length(_data.v)", "_unchanged_cols").collect()
    assert [tuple(row) for row in rows] == [(len(_LONG), None), (None, ["v"])]
