"""The catalog: what Iceberg refuses is for a person to change, and is not tried again for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.config import load
from icestream.config.spark import JARS, PACKAGES
from icestream.errors import LakeError, Retry
from icestream.lake.catalog import TableSpec
from icestream.lake.jars import DEFAULT_PACKAGES
from icestream.lake.layout import Layout
from icestream.lake.schema import LakeColumn
from icestream.lake.session import Lake, LakeOptions, _configuration
from icestream.model.types import Kind, TargetType
from support.lake import SECRET
from support.settings_texts import ENOUGH


@pytest.mark.parametrize("expression", ["nope", "day(id)", "bucket[4](score)"])
def test_a_partition_that_iceberg_refuses_needs_a_person(lake: Lake, expression: str) -> None:
    columns = [LakeColumn("id", TargetType(Kind.INT), is_key=True), LakeColumn("score", TargetType(Kind.DOUBLE))]
    with pytest.raises(LakeError) as caught:
        lake.catalog.create("refused", "orders", TableSpec(columns, layout=Layout(partition=(expression,))))
    assert caught.value.retry is Retry.NEVER
    assert lake.catalog.load("refused", "orders") is None


def test_jars_of_the_spark_settings_add_to_our_own(tmp_path: Path) -> None:
    overrides = {"spark.jars": "/one.jar", "spark.conf": {JARS: "/two.jar, /three.jar", "spark.x": "1"}}
    settings = load(None, ENOUGH, overrides).settings
    conf = _configuration(LakeOptions.from_settings(settings))
    *ours, one, two, three = conf[JARS].split(",")
    assert (one, two, three, conf["spark.x"]) == ("/one.jar", "/two.jar", "/three.jar", "1")
    assert any("iceberg-spark-runtime" in jar for jar in ours)


def test_options_of_the_jvm_add_to_our_own() -> None:
    added = {"spark.driver.extraJavaOptions": "-Dx=1", "spark.driver.extraClassPath": "/their.jar"}
    conf = _configuration(LakeOptions.from_settings(load(None, ENOUGH, {"spark.conf": added}).settings))
    assert "log4j2.properties" in conf["spark.driver.extraJavaOptions"]
    assert conf["spark.driver.extraJavaOptions"].endswith(" -Dx=1")
    assert "iceberg-spark-runtime" in conf["spark.driver.extraClassPath"]
    assert conf["spark.driver.extraClassPath"].endswith(":/their.jar")


def test_no_secret_of_the_catalog_stands_on_a_command_line(lake: Lake) -> None:
    key = f"spark.sql.catalog.{lake.catalog.name}.rest.token"
    assert lake.spark.conf.get(key) == SECRET
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.parent.exists()]
    assert any(b"org.apache.spark.deploy.SparkSubmit" in line for line in lines)
    assert not [line for line in lines if SECRET.encode() in line]


def test_executors_of_a_cluster_get_our_jars() -> None:
    settings = load(None, ENOUGH, {"spark.master": "spark://host:7077"}).settings
    conf = _configuration(LakeOptions.from_settings(settings))
    assert "iceberg-spark-runtime" in conf[JARS]


def test_packages_of_the_spark_settings_add_to_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("icestream.lake.jars.resolve", lambda packages, conf: asked.extend(packages) or [])
    settings = load(None, ENOUGH, {"spark.packages": "a:b:1", "spark.conf": {PACKAGES: "c:d:2"}}).settings
    conf = _configuration(LakeOptions.from_settings(settings))
    assert asked == [*DEFAULT_PACKAGES, "a:b:1", "c:d:2"]
    assert PACKAGES not in conf, "Spark would put them in the place of ours"
