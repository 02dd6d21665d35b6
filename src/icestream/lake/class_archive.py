"""The classes that Spark loads, kept in the form the JVM has them in memory: a session starts in half the time.

Made by `make setup`: a JVM does a bit of everything that workers do and, when it ends, writes down what
it has loaded. The JVM itself checks that an archive fits its version and class path, and does without one that doesn't.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_KEPT = 3  # an archive has about 200 MB; those of environments that are gone must not pile up
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_LONGEST_S = 300.0


def java_options(jars: Sequence[Path], folder: Path, java: str) -> str:
    """What a JVM is told to use the archive; nothing if there is none."""
    archive = _path(jars, folder, java)
    return f'"-XX:SharedArchiveFile={archive}" {_QUIET}' if archive.is_file() else ""


def class_path(jars: Sequence[Path]) -> str:
    """The JVM archives only classes from its own class path, so there the jars have to be, in the same order."""
    return ":".join(map(str, jars))


def try_making(jars: Sequence[Path], folder: Path, java: str) -> bool:
    """Whether there is an archive now. Without one everything works, only slower."""
    archive = _path(jars, folder, java)
    if archive.is_file():
        return True
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / archive.name
        if not _train(jars, made) or not made.is_file():
            return False
        made.rename(archive)
    _leave_newest(folder)
    return True


def _path(jars: Sequence[Path], folder: Path, java: str) -> Path:
    program = Path(java).resolve()
    spark = importlib.util.find_spec("pyspark")
    facts = [program, program.stat().st_mtime_ns, spark.origin if spark else None, class_path(jars)]
    return folder / f"{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}.jsa"


def _train(jars: Sequence[Path], archive: Path) -> bool:
    command = [sys.executable, "-m", "icestream.lake.class_training", class_path(jars), str(archive)]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_LONGEST_S, env=_environment())
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _environment() -> Mapping[str, str]:
    """Options meant for the sessions of this process are none of the archive's."""
    return {name: value for name, value in os.environ.items() if name != "SPARK_SUBMIT_OPTS"}


def _leave_newest(folder: Path) -> None:
    archives = sorted(folder.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in archives[_KEPT:]:
        old.unlink(missing_ok=True)
    for left_over in folder.glob("tmp*"):
        shutil.rmtree(left_over, ignore_errors=True)
