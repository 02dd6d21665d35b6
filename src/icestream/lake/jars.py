"""The Java libraries that Spark needs: fetched once, under a lock, into a folder of our own.

`python -m icestream.lake.jars` does that ahead of time, and prepares the machine for quick starts.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from icestream.errors import EnvironmentMissing
from icestream.lake import class_archive

ICEBERG_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
SQLITE_JDBC = "org.xerial:sqlite-jdbc:3.53.4.0"
_WHERE_FROM = ("spark.jars.repositories", "spark.jars.ivySettings", "spark.jars.excludes")
DEFAULT_PACKAGES = (ICEBERG_RUNTIME, SQLITE_JDBC)
CACHE = "ICESTREAM_CACHE"
_ANOTHER_CACHE = f"set the variable {CACHE} to a folder that can be written"

# Spark resolves `spark.jars.packages` while it starts; a session that does nothing else leaves the jars behind.
_RESOLVE = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1")
for setting in sys.argv[3:]:
    builder = builder.config(*setting.split("=", 1))
builder.config("spark.jars.ivy", sys.argv[1]).config("spark.jars.packages", sys.argv[2]).getOrCreate().stop()
"""


def cache_folder() -> Path:
    """Raises EnvironmentMissing where none is named and the user has no home."""
    explicit = os.environ.get(CACHE)
    if explicit:
        return Path(explicit)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "icestream"
    except RuntimeError as err:
        raise EnvironmentMissing("this user has no home folder to keep Java packages in", hint=_ANOTHER_CACHE) from err


def resolve(packages: Sequence[str] = DEFAULT_PACKAGES, conf: Mapping[str, str] | None = None) -> list[Path]:
    """The jar files of `packages`. The first call per set of packages downloads them; later ones only look.

    `conf`: Spark's settings, of which those that say where packages come from are heeded. Raises EnvironmentMissing.
    """
    cache = cache_folder()
    try:
        return _resolved(packages, conf or {}, cache / "jars")
    except OSError as err:
        reason = err.strerror or err
        raise EnvironmentMissing(f"the cache folder {cache} cannot be used: {reason}", hint=_ANOTHER_CACHE) from err


def _resolved(packages: Sequence[str], conf: Mapping[str, str], cache: Path) -> list[Path]:
    where = [f"{name}={value}" for name, value in sorted(conf.items()) if name in _WHERE_FROM]
    name = hashlib.sha256("\n".join([*sorted(packages), *where]).encode()).hexdigest()[:16]
    folder = cache / name
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with _lock(cache / f"{name}.lock"):
            if not folder.is_dir():
                _download(packages, where, folder)
    return sorted(folder.glob("*.jar"))


def java_options(jars: Sequence[Path]) -> str:
    """What makes a JVM with these jars on its class path start faster, if there is something."""
    return class_archive.java_options(jars, _archives(), java_program())


def java_program() -> str:
    """The `java` that Spark will start."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None or not Path(program).exists():
        raise EnvironmentMissing(
            "no Java was found, Spark needs Java 17 or 21",
            hint="install a JRE (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME",
        )
    return program


def _archives() -> Path:
    return cache_folder() / "classes"


def _download(packages: Sequence[str], where: Sequence[str], folder: Path) -> None:
    java_program()
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        done = subprocess.run(
            [sys.executable, "-c", _RESOLVE, scratch, ",".join(packages), *where],
            capture_output=True,
            text=True,
            check=False,
        )
        jars = Path(scratch) / "jars"
        if done.returncode != 0 or not jars.is_dir():
            reason = next((line for line in done.stderr.splitlines() if "Exception" in line or "not found" in line), "")
            raise EnvironmentMissing(
                f"could not fetch the Java packages {', '.join(packages)}: {reason.strip() or 'Spark did not start'}",
                hint="check the connection to a Maven repository, or name local files in `spark.jars`",
            )
        jars.rename(folder)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    class_archive.try_making(resolve(), _archives(), java_program())
