"""Will Spark start, and with the libraries it needs? Looked at without starting it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from glob import has_magic
from pathlib import Path

from icestream.config.locations import absolute
from icestream.config.settings import Settings
from icestream.lake.jars import ICEBERG_RUNTIME, java_program
from icestream.verify.findings import Finding, error

JAVA_VERSIONS = ("17", "21")
_S3_PACKAGES = (
    f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG_RUNTIME.rpartition(':')[2]}",
    "org.apache.hadoop:hadoop-aws:3.4.2",  # the Hadoop that PySpark brings
)
_DRIVERS = {
    "postgresql": "org.postgresql:postgresql:42.7.4",
    "mysql": "com.mysql:mysql-connector-j:9.1.0",
    "mariadb": "org.mariadb.jdbc:mariadb-java-client:3.5.1",
}
_OWN_DRIVER = "sqlite"


def check_object_store(settings: Settings) -> list[Finding]:
    """Capture reaches an object store by itself; Spark needs libraries for it, which are not there by default."""
    sink = settings.sink
    remote = [place for place in (sink.warehouse, sink.staging_root) if ":/" in place and not place.startswith("/")]
    if not remote or settings.spark.brings_libraries:
        return []
    return [
        error(
            f"Spark has no libraries to read and write {remote[0]}",
            f"name them in `spark.packages`, for S3: [{', '.join(_S3_PACKAGES)}]; or as files in `spark.jars`",
        )
    ]


def check_jars(settings: Settings) -> list[Finding]:
    return [*_missing_files(settings), *_missing_driver(settings)]


def check_java(settings: Settings) -> list[Finding]:
    """Only where Spark runs on this machine's Java."""
    if not settings.spark.master.startswith("local"):
        return []
    major = _java_major(java_program())
    if major in JAVA_VERSIONS:
        return []
    return [error(f"Java {major} was found, Spark needs {' or '.join(JAVA_VERSIONS)}", "set JAVA_HOME to one of them")]


def _missing_files(settings: Settings) -> Iterator[Finding]:
    """Of what lies on this machine; Spark itself would only warn, and fail later at a class that is not there."""
    for jar in settings.spark.all_jars:
        path = absolute(jar)
        if not path.startswith("/"):
            continue
        if not (any(Path("/").glob(path[1:])) if has_magic(path) else Path(path).is_file()):
            yield error(f"there is no file {jar}, which `spark.jars` names", "correct `spark.jars`")


def _missing_driver(settings: Settings) -> Iterator[Finding]:
    uri = settings.sink.catalog_properties().get("uri", "")
    if not uri.startswith("jdbc:") or settings.spark.brings_libraries:
        return
    kind = uri.split(":")[1]
    if kind in _DRIVERS:
        yield error(
            f"Spark has no driver for jdbc:{kind}", f"name it in `spark.packages`, for instance {_DRIVERS[kind]}"
        )
    elif kind != _OWN_DRIVER:
        known = ", ".join((_OWN_DRIVER, *_DRIVERS))
        yield error(
            f"the catalog's uri begins with jdbc:{kind}:, for which Spark has no driver",
            f"correct `uri` in `sink.catalog` (known are {known}), or name the driver in `spark.packages`",
        )


def _java_major(program: str) -> str:
    told = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    _, _, version = told.partition('version "')
    return version.partition(".")[0].partition('"')[0] or "of unknown version"
