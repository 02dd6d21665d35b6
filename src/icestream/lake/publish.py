"""The second half of a commit: one compare-and-set makes a staged branch the table's head, cursor and all."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from icestream.errors import LakeError, LakeUnavailable, PublishRefused
from icestream.lake.history import OURS, holds_commit
from icestream.lake.java import JAVA_ERRORS, Java, error_classes, error_message, string_map
from icestream.lake.next_columns import NextColumns
from icestream.lake.stage import Staged
from icestream.lake.table import MAIN, IcebergTable

_ATTEMPTS = 10


class Outcome(enum.Enum):
    COMMITTED = "committed"
    REJECTED = "rejected"  # certainly not in the table, and never will be
    UNKNOWN = "unknown"  # may be in the table now or later; only the table's history can tell


@dataclass(frozen=True)
class Published:
    outcome: Outcome
    reason: str = ""


def publish(
    table: IcebergTable, staged: Staged, properties: Mapping[str, str], columns: NextColumns | None = None
) -> Published:
    """Move `main` from the base the batch was made on to the staged head, and set `properties`, in one commit.

    `columns` become the table's own in the same commit, with one more snapshot that says the same as the staged one.

    The fence: the branch must hold exactly what was written to it, and `main` must still be the base. A worker that
    slept through its lease finds `main` moved and is refused. May be repeated with the same `staged`.
    """
    for _ in range(_ATTEMPTS):
        try:
            table.refresh()
            base = table.metadata()
        except LakeError as err:
            return Published(Outcome.UNKNOWN, str(err))
        refusal = _refusal(base, staged) or _columns_refusal(base, columns)
        if refusal is not None:
            # Right after an answer that got lost it may only mean that the commit is already there.
            landed = holds_commit(table, staged.commit_id, since=staged.base)
            return Published(Outcome.COMMITTED) if landed else Published(Outcome.REJECTED, refusal)
        try:
            table.java.operations().commit(base, _published(table, base, staged, properties, columns))
        except JAVA_ERRORS as err:
            if "CommitFailedException" in error_classes(err):
                continue  # something else about the table changed: look again
            return Published(Outcome.UNKNOWN, error_message(err))
        return Published(Outcome.COMMITTED)
    return Published(Outcome.REJECTED, f"the table changed {_ATTEMPTS} times while it was published")


def publish_or_raise(
    table: IcebergTable, staged: Staged, properties: Mapping[str, str], columns: NextColumns | None = None
) -> None:
    """Returns once the commit is in the table.

    Raises PublishRefused when the batch has to be made again because the table moved, LakeUnavailable when the catalog
    does not take commits now.
    """
    published = publish(table, staged, properties, columns)
    if published.outcome is Outcome.REJECTED:
        raise PublishRefused(f"{table.key}: {published.reason}")
    if published.outcome is Outcome.UNKNOWN:
        table.refresh()
        if not holds_commit(table, staged.commit_id, since=staged.base):
            # Should it land after all, `main` has moved and whatever is staged next is refused.
            raise LakeUnavailable(f"{table.key}: the outcome of a commit is unknown: {published.reason}")


def _refusal(metadata: Java, staged: Staged) -> str | None:
    main = metadata.ref(MAIN)
    if (None if main is None else main.snapshotId()) != staged.base:
        return "the table has moved since the batch was made"
    branch = metadata.ref(staged.branch)
    if branch is None:
        return f"branch {staged.branch} is gone"
    snapshot_id = branch.snapshotId()
    for expected in reversed(staged.snapshots):
        if snapshot_id != expected or metadata.snapshot(snapshot_id) is None:
            return f"branch {staged.branch} is not what was written to it"
        snapshot_id = metadata.snapshot(snapshot_id).parentId()
    if snapshot_id != staged.base:
        return f"branch {staged.branch} does not lie on the snapshot the batch was made on"
    return None


def _columns_refusal(metadata: Java, columns: NextColumns | None) -> str | None:
    if columns is not None and metadata.currentSchemaId() != columns.instead_of:
        return "the table's columns have changed since the batch was made"
    return None


def _published(
    table: IcebergTable, base: Java, staged: Staged, properties: Mapping[str, str], columns: NextColumns | None
) -> Java:
    jvm, metadata = table.jvm, base if columns is None else _with_columns(table, base, staged, columns)
    refs, main = jvm.org.apache.iceberg.SnapshotRef, base.ref(MAIN)
    newest = metadata.ref(staged.branch).snapshotId()
    head = (refs.branchBuilder(newest) if main is None else refs.builderFrom(main, newest)).build()
    return (
        jvm.org.apache.iceberg.TableMetadata.buildFrom(metadata)
        .setRef(MAIN, head)
        .removeRef(staged.branch)
        .setProperties(string_map(jvm, properties))
        .build()
    )


def _with_columns(table: IcebergTable, base: Java, staged: Staged, columns: NextColumns) -> Java:
    """A snapshot says which columns it was made with, so one more is made with the new ones: whoever reads the table
    as of that snapshot sees them, too."""
    iceberg = table.jvm.org.apache.iceberg
    metadata = iceberg.TableMetadata.buildFrom(base).setCurrentSchema(columns.schema_id).build()
    transaction = iceberg.Transactions.replaceTableTransaction(table.key, table.java.operations(), metadata)
    append = transaction.newAppend().toBranch(staged.branch)
    for key, value in dict(base.snapshot(staged.snapshots[-1]).summary()).items():
        if key.startswith(OURS):
            append.set(key, value)
    append.commit()
    return transaction.currentMetadata()
