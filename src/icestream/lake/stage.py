"""The first half of a commit: a batch is written to a branch of its own, where no reader sees it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from icestream.errors import LakeError, LakeUnavailable, PublishRefused
from icestream.lake.data_files import append_files
from icestream.lake.delete_files import replace_rows, write_keys
from icestream.lake.history import COMMIT_ID, PART, Owner
from icestream.lake.java import JAVA_ERRORS, Java, calling, error_message
from icestream.lake.table import IcebergTable, Snapshot
from icestream.model.copying import WrittenFile

_BRANCH_PREFIX = "icestream_"
_COMMIT = re.compile("[0-9a-f]{32}")  # a person may call a branch of theirs `icestream_audit`
_SUMMARY_SETTING = "spark.sql.iceberg.snapshot-property."
_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class Staged:
    """A written branch, ready to be published: its snapshots, oldest first, lie directly on `base`."""

    branch: str
    base: int | None
    snapshots: tuple[int, ...]
    commit_id: str


class Stage:
    """Writes the parts of one commit. Each part is one snapshot; only the last one carries the cursor.

    A crash leaves a branch behind that the next `begin` on the table drops; nothing of it was visible.
    """

    def __init__(
        self, table: IcebergTable, session: SparkSession, *, owner: Owner, base: int | None, commit_id: str
    ) -> None:
        self._table = table
        self._session = session
        self._base = base
        self._commit_id = commit_id
        self._snapshots: list[int] = []
        # Several pipelines may write to one table: each clears away only what is its own.
        self._prefix = f"{_BRANCH_PREFIX}{hashlib.sha256(str(owner).encode()).hexdigest()[:8]}_"
        self.branch = self._prefix + commit_id.replace("-", "")

    @classmethod
    def begin(
        cls, table: IcebergTable, session: SparkSession, *, owner: Owner, base: int | None, commit_id: str
    ) -> Stage:
        """Create the branch at `base`, and drop what earlier attempts of the same owner left behind."""
        stage = cls(table, session, owner=owner, base=base, commit_id=commit_id)
        stage._create_branch()
        return stage

    @property
    def sql_name(self) -> str:
        return self._table.sql_name(self.branch)

    def delete_all(self, part: str, summary: Mapping[str, str]) -> None:
        self._write(lambda: self._table.delete_all(self.branch, self._label(part, summary)))

    def append(self, rows: DataFrame, part: str, summary: Mapping[str, str]) -> None:
        with_label = self._labelled(part, summary)
        self._write(lambda: with_label(lambda: rows.writeTo(self.sql_name).append()))

    def append_files(self, files: Sequence[WrittenFile], part: str, summary: Mapping[str, str]) -> None:
        """Files that tasks wrote themselves; without any it is a part that changes nothing."""
        self._write(lambda: append_files(self._table, self.branch, files, self._label(part, summary)))

    def merge(self, statement: str, part: str, summary: Mapping[str, str]) -> None:
        """Run a MERGE INTO this branch; `statement` names it by `sql_name`."""
        with_label = self._labelled(part, summary)
        self._write(lambda: with_label(lambda: self._session.sql(statement)))

    def replace(self, keys: DataFrame, rows: DataFrame | None, part: str, summary: Mapping[str, str]) -> None:
        """One part that deletes rows by key (a frame of the key columns, each key once) and adds others.

        Spark can't write both at once: its files are written by an append that is taken back, and added again.
        """
        data = [] if rows is None else self._written(rows)
        try:
            deletes = write_keys(self._table, keys)
        except JAVA_ERRORS as err:
            raise LakeUnavailable(f"{self._table.key}: writing keys failed: {error_message(err)}") from err
        label, named = self._label(part, summary), (keys.columns, deletes)
        self._write(lambda: replace_rows(self._table, self.branch, named, data, label))

    def mark(self, part: str, summary: Mapping[str, str]) -> None:
        """A part that changes no row, for a batch that folds to nothing but still moves the cursor."""
        self._write(lambda: self._table.empty_append(self.branch, self._label(part, summary)))

    def finish(self) -> Staged:
        return Staged(self.branch, self._base, tuple(self._snapshots), self._commit_id)

    def _written(self, rows: DataFrame) -> list[Java]:
        """Data files with these rows; the branch is as it was before."""
        previous = self._snapshots[-1] if self._snapshots else self._base
        self.append(rows, "0/0", {})
        added = self._snapshots.pop()
        with calling(f"{self._table.key}: taking back an append"):
            files = list(self._table.java.snapshot(added).addedDataFiles(self._table.java.io()))
            self._table.java.manageSnapshots().replaceBranch(self.branch, previous).commit()
        self._table.refresh()
        return files

    def _create_branch(self) -> None:
        try:
            self._drop_left_over()
            manage = self._table.java.manageSnapshots()
            if self._base is None:  # Iceberg then begins the branch with an empty snapshot
                manage = manage.createBranch(self.branch)
            else:
                manage = manage.createBranch(self.branch, self._base)
            # Somebody's snapshot expiry must not remove parts while the commit is under way.
            manage = manage.setMinSnapshotsToKeep(self.branch, 100).setMaxSnapshotAgeMs(self.branch, _DAY_MS)
            manage.setMaxRefAgeMs(self.branch, _DAY_MS).commit()
        except JAVA_ERRORS as err:
            raise LakeUnavailable(
                f"{self._table.key}: creating branch {self.branch} failed: {error_message(err)}"
            ) from err
        self._table.refresh()
        if self._base is None:
            self._note_new_snapshots(labelled=False)

    def _drop_left_over(self) -> None:
        left_over = [name for name in self._table.branches() if self._is_ours(name)]
        if left_over:
            manage = self._table.java.manageSnapshots()
            for name in left_over:
                manage = manage.removeBranch(name)
            manage.commit()
            self._table.refresh()

    def _is_ours(self, branch: str) -> bool:
        return branch.startswith(self._prefix) and _COMMIT.fullmatch(branch, len(self._prefix)) is not None

    def _write(self, action: Callable[[], object]) -> None:
        try:
            action()
        except AnalysisException as err:
            raise LakeError(f"{self._table.key}: Spark can't write this batch: {error_message(err)}") from err
        except JAVA_ERRORS as err:
            raise LakeUnavailable(f"{self._table.key}: writing to the lake failed: {error_message(err)}") from err
        self._table.refresh()
        self._note_new_snapshots(labelled=True)

    def _note_new_snapshots(self, *, labelled: bool) -> None:
        """Remember what the write added; anything that is not ours means that somebody else wrote to the branch."""
        previous = self._snapshots[-1] if self._snapshots else self._base
        added = list(takewhile(lambda snapshot: snapshot.id != previous, self._chain()))
        foreign = labelled and any(snapshot.summary.get(COMMIT_ID) != self._commit_id for snapshot in added)
        if not added or foreign or added[-1].parent_id != previous:
            raise PublishRefused(f"{self._table.key}: branch {self.branch} is gone, or not what was written to it")
        self._snapshots.extend(snapshot.id for snapshot in reversed(added))

    def _chain(self) -> Iterator[Snapshot]:
        return self._table.ancestors(self._table.head(self.branch))

    def _label(self, part: str, summary: Mapping[str, str]) -> dict[str, str]:
        return {COMMIT_ID: self._commit_id, PART: part, **summary}

    def _labelled(self, part: str, summary: Mapping[str, str]) -> Callable[[Callable[[], object]], None]:
        label = self._label(part, summary)

        def run(action: Callable[[], object]) -> None:
            for key, value in label.items():
                self._session.conf.set(_SUMMARY_SETTING + key, value)
            try:
                action()
            finally:
                for key in label:
                    self._session.conf.unset(_SUMMARY_SETTING + key)

        return run
