"""One Iceberg table: its name in SQL, its columns, its properties, its snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from icestream.lake.java import Java, calling

MAIN = "main"


@dataclass(frozen=True)
class Snapshot:
    id: int
    parent_id: int | None
    summary: Mapping[str, str]


@dataclass(frozen=True)
class Field:
    """A column as the table has it now; `type` is Iceberg's name of the type."""

    id: int
    name: str
    type: str
    required: bool

    @property
    def is_struct(self) -> bool:
        return self.type.startswith("struct<")


class IcebergTable:
    def __init__(self, jvm: Java, java: Java, catalog: str, namespace: str, name: str) -> None:
        self.jvm = jvm
        self.java = java
        self.key = f"{namespace}.{name}"
        self._path = [catalog, *namespace.split("."), name]

    def sql_name(self, branch: str | None = None) -> str:
        parts = self._path if branch is None else [*self._path, f"branch_{branch}"]
        return ".".join(quote(part) for part in parts)

    def refresh(self) -> None:
        """Raises LakeUnavailable."""
        with calling(f"{self.key}: loading the table"):
            self.java.refresh()

    def metadata(self) -> Java:
        """The metadata this object last saw: one consistent view, usable as the base of a compare-and-set."""
        return self.java.operations().current()

    def changed(self, change: Callable[[Java], None]) -> Java:
        """The table as a transaction would leave it that began at the metadata last seen. Nothing is committed."""
        transactions = self.jvm.org.apache.iceberg.Transactions
        transaction = transactions.replaceTableTransaction(self.key, self.java.operations(), self.metadata())
        change(transaction)
        return transaction.currentMetadata()

    def commit(self, change: Callable[[Java], None]) -> None:
        """Several changes as one. Unlike a transaction of Iceberg's own, it is never made again on top of what somebody
        else did meanwhile: it was planned from the metadata last seen, and is refused on any other."""
        base = self.metadata()
        self.java.operations().commit(base, self.changed(change))
        self.refresh()

    def properties(self) -> dict[str, str]:
        return {str(key): str(value) for key, value in dict(self.java.properties()).items()}

    def fields(self, schema: Java | None = None) -> list[Field]:
        """Those of the current schema, or of another one."""
        return [
            Field(column.fieldId(), column.name(), str(column.type()).replace(" ", ""), not column.isOptional())
            for column in (schema or self.java.schema()).columns()
        ]

    def field_ids(self, schema: Java | None = None) -> dict[str, int]:
        """The ids of all columns by name; those of a list's elements by `<column>.element`, which no other can have."""
        ids = {}
        for column in (schema or self.java.schema()).columns():
            ids[column.name()] = column.fieldId()
            if column.type().isListType():
                ids[f"{column.name()}.element"] = column.type().asListType().elementId()
        return ids

    def former_names(self) -> dict[str, str]:
        """How a column is called now, by the names it had and that no column has any more."""
        now = {column.fieldId(): column.name() for column in self.java.schema().columns()}
        schemas = self.java.schemas().values()
        had = {column.name(): column.fieldId() for schema in schemas for column in schema.columns()}
        return {name: now[id_] for name, id_ in had.items() if id_ in now and name not in now.values()}

    def head(self, branch: str = MAIN) -> int | None:
        ref = self.metadata().ref(branch)
        return None if ref is None else ref.snapshotId()

    def branches(self) -> list[str]:
        return [str(name) for name, ref in dict(self.java.refs()).items() if ref.isBranch()]

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        java = self.metadata().snapshot(snapshot_id)
        if java is None:
            return None
        return Snapshot(java.snapshotId(), java.parentId(), dict(java.summary()))

    def ancestors(self, snapshot_id: int | None) -> Iterator[Snapshot]:
        """From `snapshot_id` back to the oldest snapshot that is still known."""
        while snapshot_id is not None:
            snapshot = self.snapshot(snapshot_id)
            if snapshot is None:
                return
            yield snapshot
            snapshot_id = snapshot.parent_id

    def empty_append(self, branch: str, summary: Mapping[str, str]) -> None:
        """A snapshot that changes nothing but carries `summary`."""
        append = self.java.newAppend().toBranch(branch)
        for key, value in summary.items():
            append.set(key, value)
        append.commit()

    def delete_all(self, branch: str, summary: Mapping[str, str]) -> None:
        """Empty the branch. (A SQL DELETE of everything would lose the summary.)"""
        delete = self.java.newDelete().deleteFromRowFilter(
            self.jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()
        )
        delete = delete.toBranch(branch)
        for key, value in summary.items():
            delete.set(key, value)
        delete.commit()


def quote(identifier: str) -> str:
    """An identifier for Spark SQL."""
    return "`" + identifier.replace("`", "``") + "`"
