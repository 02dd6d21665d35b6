"""The Iceberg catalog: namespaces, and tables made with the Java API, since Spark SQL can't set identifier fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from pyspark.sql import SparkSession

from icestream.errors import LakeError, LakeUnavailable
from icestream.lake.java import (
    JAVA_ERRORS,
    Java,
    JavaError,
    error_classes,
    error_message,
    is_final,
    string_array,
    string_map,
)
from icestream.lake.layout import Layout, settle_layout
from icestream.lake.schema import add_sort_fields, iceberg_schema, partition_spec
from icestream.lake.table import IcebergTable
from icestream.model.columns import LakeColumn
from icestream.model.table import Target, WriteMode

# Readers get right answers from every snapshot without equality deletes; metadata files do not pile up.
_TABLE_DEFAULTS = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.parquet.compression-codec": "zstd",
}


@dataclass(frozen=True)
class TableSpec:
    """What a table is made of. `properties` are Icestream's own; those of the settings are part of the layout."""

    columns: Sequence[LakeColumn]
    format_version: int = 3
    layout: Layout = field(default_factory=Layout)
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, target: Target, columns: Sequence[LakeColumn], properties: Mapping[str, str]) -> TableSpec:
        return cls(columns, target.format_version, Layout.of(target), target.location, properties)

    @property
    def is_changelog(self) -> bool:
        return self.layout.write_mode == WriteMode.APPEND

    @property
    def first_partition(self) -> Sequence[str]:
        """Deletes by key are global only under a spec without partitions: such a table begins with that one."""
        return () if self.layout.write_mode == WriteMode.EQUALITY else self.layout.partition

    def all_properties(self) -> dict[str, str]:
        layout = msgspec.structs.replace(self.layout, partition=tuple(self.first_partition))
        own = {**layout.as_property(), **self.properties, "format-version": str(self.format_version)}
        return {**_TABLE_DEFAULTS, **self.layout.all_properties(), **own}


class Catalog:
    def __init__(self, spark: SparkSession, name: str) -> None:
        self.name = name
        jvm: Java = spark.sparkContext._jvm
        self._jvm = jvm
        try:
            self._java = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(spark._jsparkSession, name)
        except JAVA_ERRORS as err:
            kind = LakeError if is_final(err) else LakeUnavailable
            raise kind(
                f"the Iceberg catalog {name!r} could not be opened: {error_message(err)}",
                hint="check `sink.catalog` (or `catalog_uri`) with `icestream connect-iceberg`",
            ) from err

    def load(self, namespace: str, name: str) -> IcebergTable | None:
        """The table, fresh from the catalog; None if there is none."""
        try:
            java = self._java.loadTable(self._identifier(namespace, name))
        except JAVA_ERRORS as err:
            if {"NoSuchTableException", "NoSuchNamespaceException"} & set(error_classes(err)):
                return None
            raise self._failed(f"loading {namespace}.{name}", err) from err
        return IcebergTable(self._jvm, java, self.name, namespace, name)

    def create(self, namespace: str, name: str, spec: TableSpec) -> IcebergTable:
        """Make the table, and its namespace where needed; one that is already there is given as it is."""
        self.ensure_namespace(namespace)
        try:
            java = self._builder(namespace, name, spec).create()
        except JAVA_ERRORS as err:
            there = self.load(namespace, name) if "AlreadyExistsException" in error_classes(err) else None
            if there is not None:  # another worker was faster
                return there
            raise self._failed(f"creating {namespace}.{name}", err) from err
        table = IcebergTable(self._jvm, java, self.name, namespace, name)
        settle_layout(table, spec.layout)
        return table

    def ensure_namespace(self, namespace: str) -> None:
        java = self._namespace(namespace)
        try:
            if self._java.namespaceExists(java):
                return
            try:
                self._java.createNamespace(java)
            except JAVA_ERRORS:
                # Some catalogs answer a race with an error of their own kind: what counts is that it is there.
                if not self._java.namespaceExists(java):
                    raise
        except JAVA_ERRORS as err:
            raise self._failed(f"creating namespace {namespace}", err) from err

    def _builder(self, namespace: str, name: str, spec: TableSpec) -> Java:
        schema = iceberg_schema(self._jvm, spec.columns, is_changelog=spec.is_changelog)
        order = self._jvm.org.apache.iceberg.SortOrder.builderFor(schema).caseSensitive(True)
        add_sort_fields(self._jvm, order, spec.layout.sort_order)
        builder = (
            self._java.buildTable(self._identifier(namespace, name), schema)
            .withPartitionSpec(partition_spec(self._jvm, schema, spec.first_partition))
            .withSortOrder(order.build())
            .withProperties(string_map(self._jvm, spec.all_properties()))
        )
        return builder if spec.location is None else builder.withLocation(spec.location)

    def _namespace(self, namespace: str) -> Java:
        return self._jvm.org.apache.iceberg.catalog.Namespace.of(string_array(self._jvm, namespace.split(".")))

    def _identifier(self, namespace: str, name: str) -> Java:
        return self._jvm.org.apache.iceberg.catalog.TableIdentifier.of(self._namespace(namespace), name)

    def _failed(self, action: str, err: JavaError) -> LakeError:
        message = f"catalog {self.name!r}: {action} failed: {error_message(err)}"
        return LakeError(message) if is_final(err) else LakeUnavailable(message)
