"""The Spark session: one per process, and a SQL session of its own for each table that is worked on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from icestream.config.settings import Settings
from icestream.config.spark import FIXED_CONF, JARS, PACKAGES
from icestream.errors import EnvironmentMissing
from icestream.lake import jars, python_daemon
from icestream.lake.catalog import Catalog
from icestream.lake.class_archive import class_path
from icestream.lake.java import JAVA_ERRORS
from icestream.lake.quiet import without_greeting

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_CLASS_PATH = "spark.driver.extraClassPath"

# Settings by which Spark decides how to start the JVM, and what to bring to a cluster.
_EARLY = (
    "spark.master",
    "spark.app.name",
    "spark.driver.",
    "spark.jars",
    "spark.files",
    "spark.archives",
    "spark.submit.",
    "spark.yarn.",
    "spark.kubernetes.",
)
# They print a query that failed, with the values in it and a stack trace.
_TALKATIVE = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

_TUNING = {
    # Batches are small: the default of 200 shuffle partitions would cost more than the work.
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.autoBroadcastJoinThreshold": str(64 * 1024 * 1024),
}


@dataclass(frozen=True)
class LakeOptions:
    """What a session needs to know; everything of it comes from the settings."""

    catalog_name: str
    catalog_properties: Mapping[str, str]
    master: str = "local[*]"
    packages: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_settings(cls, settings: Settings) -> LakeOptions:
        return cls(
            catalog_name=settings.sink.catalog_name,
            catalog_properties=settings.sink.catalog_properties(),
            master=settings.spark.master,
            packages=settings.spark.all_packages,
            jars=settings.spark.all_jars,
            # Ours are in the same settings, and without them nothing works.
            conf={name: value for name, value in settings.spark.conf.items() if name not in (JARS, PACKAGES)},
        )


class Lake:
    """A running Spark with one Iceberg catalog."""

    def __init__(self, spark: SparkSession, catalog_name: str) -> None:
        self.spark = spark
        self.catalog = Catalog(spark, catalog_name)
        self._idle: list[SparkSession] = []

    @contextmanager
    def session(self) -> Iterator[SparkSession]:
        """Nobody else's while the block lasts: SQL settings such as snapshot properties must not leak between tables.

        Lent, not made: each has a catalog of its own, and there are more tables than are ever worked on at once.
        """
        try:
            session = self._idle.pop()
        except IndexError:
            session = self.spark.newSession()
        try:
            yield session
        finally:
            self._idle.append(session)

    @property
    def is_running(self) -> bool:
        """False once Spark has ended by itself: its JVM may well live on, but does no work any more."""
        return not self.spark.sparkContext._jsc.sc().isStopped()

    def close(self) -> None:
        self.spark.stop()


def open_lake(options: LakeOptions) -> Lake:
    """Start Spark (some seconds) and open the catalog. Raises EnvironmentMissing or LakeError."""
    jars.java_program()
    # Tasks run the interpreter that has our packages; on a cluster it may lie elsewhere.
    os.environ["PYSPARK_PYTHON"] = options.conf.get("spark.pyspark.python") or sys.executable
    conf = {"spark.app.name": "icestream", "spark.master": options.master, **_configuration(options)}
    try:
        with without_greeting():
            _start_jvm(conf)
            spark = SparkSession.builder.config(map={**conf}).getOrCreate()
    except (*JAVA_ERRORS, OSError) as err:
        raise EnvironmentMissing(
            f"Spark did not start on {options.master}",
            hint="check `java -version` (17 or 21) and the `spark` settings",
        ) from err
    return Lake(spark, options.catalog_name)


def _start_jvm(conf: Mapping[str, str]) -> None:
    """With what it has to know from its first moment. Whatever stands on its command line, everybody on the machine can
    read, so the rest, passwords among it, is told when it runs."""
    early = [(name, value) for name, value in conf.items() if name.startswith(_EARLY)]
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(early))
    for name in _TALKATIVE:
        PySparkLogger.getLogger(name).disabled = True


def _configuration(options: LakeOptions) -> dict[str, str]:
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Jobs of a long copy (see `lake.tasks`) leave cores to the cycles of other tables.
        "spark.scheduler.mode": "FAIR",
        "spark.python.daemon.module": python_daemon.__name__,
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        "spark.driver.memory": "2g",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.defaultCatalog": options.catalog_name,
        **_TUNING,
        **_catalog_configuration(options),
    }
    if options.master.startswith("local"):
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return conf | dict(options.conf) | _libraries(options) | FIXED_CONF


def _libraries(options: LakeOptions) -> dict[str, str]:
    """Jars and options of the JVM; those of the settings add to ours."""
    ours = jars.resolve([*jars.DEFAULT_PACKAGES, *options.packages], options.conf)
    java_options = [f'"-Dlog4j2.configurationFile=file:{Path(__file__).parent}/log4j2.properties"']
    if _is_one_jvm(options.master) and not options.jars:
        java_options.append(jars.java_options(ours))
        conf = {_CLASS_PATH: ":".join(filter(None, [class_path(ours), options.conf.get(_CLASS_PATH)]))}
    else:
        # One class loader for all of them, or ours would not find theirs.
        conf = {JARS: ",".join([*map(str, ours), *options.jars])}
    java_options.append(options.conf.get(_JAVA_OPTIONS, ""))
    return conf | {_JAVA_OPTIONS: " ".join(filter(None, java_options))}


def _is_one_jvm(master: str) -> bool:
    """Whether driver and executor are the same process."""
    return master.startswith("local") and not master.startswith("local-cluster")


def _catalog_configuration(options: LakeOptions) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{options.catalog_name}"
    conf = {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        # Another session must not read an old snapshot out of this one's cache.
        f"{prefix}.cache-enabled": "false",
    }
    return conf | {f"{prefix}.{key}": value for key, value in options.catalog_properties.items()}
