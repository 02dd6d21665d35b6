"""Staged files: whole or not there, under names that any table name can have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from icestream.errors import StateUnavailable, StorageError
from icestream.log.store import LocalStore, RemoteStore, Store, open_store
from icestream.log.writer import EncodedRows, LogWriter, folder_name, staged_path
from icestream.model.table import Column, Profile, Relation

RELATION = Relation(1, "public", "t", "d", (Column("id", 23, is_key=True),))


@pytest.fixture(params=["local", "remote"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return LocalStore(tmp_path)
    return RemoteStore(f"file://{tmp_path}", {})


def test_a_file_is_there_after_put_and_gone_after_delete(store: Store, tmp_path: Path) -> None:
    if isinstance(store, RemoteStore):
        (tmp_path / "a").mkdir()  # an object store has no folders; this stand-in does
    store.put("a/b.parquet", b"one")
    store.put("a/b.parquet", pa.py_buffer(b"two"))
    assert store.exists("a/b.parquet")
    assert (tmp_path / "a" / "b.parquet").read_bytes() == b"two"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.parquet"]
    store.delete("a/b.parquet")
    store.delete("a/b.parquet")
    assert not store.exists("a/b.parquet")


def test_what_a_killed_process_left_half_written_goes_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(Path, "replace", kill)
    with pytest.raises(Killed):
        LocalStore(tmp_path).put("a/b.parquet", b"one")
    assert list((tmp_path / "a").iterdir())
    LocalStore(tmp_path).delete("a/b.parquet")
    assert not list((tmp_path / "a").iterdir())


def test_folders_come_with_their_files(tmp_path: Path) -> None:
    LocalStore(tmp_path / "not" / "there").put("x/y/z.parquet", b"data")
    assert (tmp_path / "not" / "there" / "x" / "y" / "z.parquet").read_bytes() == b"data"


def test_a_failure_names_the_file_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("not a folder")
    with pytest.raises(StorageError, match=r"x/y\.parquet") as caught:
        LocalStore(tmp_path).put("x/y.parquet", b"data")
    assert caught.value.hint
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize("root", ["{}", "file://{}", "file:{}"])
def test_a_local_folder_may_be_written_as_path_or_uri(tmp_path: Path, root: str) -> None:
    store = open_store(root.format(tmp_path))
    assert isinstance(store, LocalStore)
    assert store.uri("a%2Fb/c.parquet") == f"file://{tmp_path}/a%2Fb/c.parquet"


def test_an_object_store_keeps_its_uri() -> None:
    properties = {"s3.endpoint": "http://127.0.0.1:1", "s3.access-key-id": "k", "s3.secret-access-key": "s"}
    store = open_store("s3://bucket/lake/staged", {**properties, "client.region": "eu-west-1"})
    assert store.uri("p/t/f.parquet") == "s3://bucket/lake/staged/p/t/f.parquet"


def test_a_store_that_does_not_exist_is_refused() -> None:
    with pytest.raises(StorageError, match="nosuch"):
        open_store("nosuch://bucket/x")


@pytest.mark.parametrize("name", ["public.orders", "a/b", "..", ".", "sp ace", "ünï", 'q"uo%te', "x" * 300, "_hidden"])
def test_any_name_becomes_one_folder(name: str, tmp_path: Path) -> None:
    folder = folder_name(name)
    assert "/" not in folder and folder not in (".", "..") and len(folder) < 255
    LocalStore(tmp_path).put(f"{folder}/f", b"")
    assert [path.name for path in tmp_path.iterdir()] == [folder]


def test_long_names_stay_apart() -> None:
    assert folder_name("x" * 300 + "a") != folder_name("x" * 300 + "b")
    assert staged_path("p", "t") != staged_path("p", "t")


def rows(table: str) -> EncodedRows:
    return EncodedRows(
        table, RELATION, pa.py_buffer(table.encode()), last_lsn=5, first_commit_at=1.5, profile=Profile(inserts=3)
    )


def test_files_are_announced_before_they_are_uploaded(tmp_path: Path) -> None:
    announced: list[str] = []

    def intend(paths: Sequence[str]) -> None:
        assert not list(tmp_path.rglob("*.parquet"))
        announced.extend(paths)

    writer = LogWriter(LocalStore(tmp_path), "shop", intend)
    staged = writer.stage([rows("public.a"), rows("public.b")])
    writer.close()
    assert [file.path for file in staged] == announced
    assert [(file.table, file.record_count, file.last_lsn) for file in staged] == [
        ("public.a", 3, 5),
        ("public.b", 3, 5),
    ]
    assert [(tmp_path / path).read_text() for path in announced] == ["public.a", "public.b"]
    assert all(path.startswith("shop/public.") for path in announced)


def test_nothing_is_uploaded_that_could_not_be_announced(tmp_path: Path) -> None:
    def intend(_paths: Sequence[str]) -> None:
        raise StateUnavailable("down")

    writer = LogWriter(LocalStore(tmp_path), "shop", intend)
    with pytest.raises(StateUnavailable):
        writer.stage([rows("public.a")])
    writer.close()
    assert not list(tmp_path.iterdir())
