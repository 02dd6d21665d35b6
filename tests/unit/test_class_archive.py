"""An archive of classes is used where it fits, and is never needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from icestream.lake import class_archive

JARS = [Path("/lib/a.jar"), Path("/lib/b.jar")]
JAVA = shutil.which("java") or sys.executable


def training(monkeypatch: pytest.MonkeyPatch, *, succeeds: bool) -> list[list[str]]:
    """What the training process is called with; it leaves an archive if it succeeds."""
    calls: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        calls.append(command)
        if succeeds:
            Path(command[-1]).write_bytes(b"classes")
        return subprocess.CompletedProcess(command, 0 if succeeds else 1)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_without_an_archive_the_jvm_is_told_nothing(tmp_path: Path) -> None:
    assert class_archive.java_options(JARS, tmp_path / "none", JAVA) == ""


def test_an_archive_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = training(monkeypatch, succeeds=True)
    assert class_archive.try_making(JARS, tmp_path, JAVA)
    assert class_archive.try_making(JARS, tmp_path, JAVA)
    assert len(calls) == 1
    assert "-XX:SharedArchiveFile=" in class_archive.java_options(JARS, tmp_path, JAVA)


def test_other_jars_have_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training(monkeypatch, succeeds=True)
    assert class_archive.try_making(JARS, tmp_path, JAVA)
    assert class_archive.java_options(JARS[:1], tmp_path, JAVA) == ""


def test_a_failed_training_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training(monkeypatch, succeeds=False)
    assert not class_archive.try_making(JARS, tmp_path, JAVA)
    assert list(tmp_path.iterdir()) == []


def test_old_archives_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training(monkeypatch, succeeds=True)
    for age in range(6):
        old = tmp_path / f"old{age}.jsa"
        old.touch()
        os.utime(old, (age, age))
    assert class_archive.try_making(JARS, tmp_path, JAVA)
    assert {"old4.jsa", "old5.jsa"} < {path.name for path in tmp_path.iterdir()}
    assert len(list(tmp_path.iterdir())) == 3
