"""Rows on disk: whole, in order, gone with the process, and clear about a full disk."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from icestream.capture.rows import Rows
from icestream.capture.spill import Spill
from icestream.capture.transaction import Transaction
from icestream.errors import Retry, StorageError
from icestream.model.table import Column, Relation
from support import pgoutput_messages as pg

RELATION = Relation(1, "public", "t", "d", (Column("id", 23, is_key=True),))


def rows_of(*xids: int) -> Rows:
    rows = Rows("public.t", RELATION, in_stream=True)
    for number, xid in enumerate(xids):
        rows.add(pg.insert(1, [str(number)], xid))
    return rows


def test_blocks_come_back_as_they_were_written(tmp_path: Path) -> None:
    spill = Spill(tmp_path)
    written = [rows_of(1), rows_of(2, 2, 2), rows_of(*range(1000))]
    for part, rows in enumerate(written):
        spill.write(part, rows)
    spill.flush()
    found = list(spill.blocks())
    assert [(block.part, block.data, block.sizes) for block in found] == [
        (part, bytes(rows.data), rows.sizes) for part, rows in enumerate(written)
    ]
    spill.close()


def test_it_has_no_name_that_could_stay_behind(tmp_path: Path) -> None:
    spill = Spill(tmp_path)
    spill.write(0, rows_of(*range(1000)))
    assert list(tmp_path.iterdir()) == []
    spill.close()


@pytest.mark.parametrize("aborted", [[], [5], [1, 2], [1, 2, 3], [9, 10, 4_000_000_000]])
def test_rows_of_aborted_subtransactions_are_left_out(aborted: list[int]) -> None:
    xids = [1, 2, 3, 1, 2, 4_000_000_000]
    rows = rows_of(*xids)
    kept = rows.without(np.array(sorted(aborted), np.uint32))
    expected = [pg.insert(1, [str(number)], xid) for number, xid in enumerate(xids) if xid not in aborted]
    assert bytes(kept.data) == b"".join(expected)
    assert kept.message_sizes().tolist() == [len(message) for message in expected]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nowhere") as caught:
        Spill(tmp_path / "nowhere")
    assert caught.value.retry is Retry.LATER


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small tmpfs")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a tmpfs is not allowed here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_noticed_while_the_transaction_can_still_be_thrown_away(small_disk: Path) -> None:
    transaction = Transaction(7, small_disk, in_stream=False)
    rows = transaction.rows_of("public.t", RELATION)
    rows.data.extend(bytes(200_000))
    rows.sizes.append(200_025)
    with pytest.raises(StorageError, match="No space left"):
        transaction.move_to_disk()
    transaction.drop()
