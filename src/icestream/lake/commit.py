"""One whole commit to a table: written to a branch, then published with what the table is to remember of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from icestream.lake.history import Owner
from icestream.lake.next_columns import NextColumns
from icestream.lake.publish import publish_or_raise
from icestream.lake.stage import Stage
from icestream.lake.table import IcebergTable
from icestream.model.ids import new_id


@dataclass(frozen=True)
class Commit:
    """A commit to be: `base` is the snapshot it is made for, and it is refused on any other."""

    table: IcebergTable
    session: SparkSession
    owner: Owner
    base: int | None

    def make(
        self,
        write: Callable[[Stage], None],
        properties: Callable[[int], Mapping[str, str]],
        columns: NextColumns | None = None,
    ) -> int:
        """Publishes what `write` writes, together with the `properties` of its last snapshot, whose id it returns.

        Raises PublishRefused (make it again), LakeUnavailable (later), LakeError (a person).
        """
        stage = Stage.begin(self.table, self.session, owner=self.owner, base=self.base, commit_id=new_id())
        write(stage)
        staged = stage.finish()
        newest = staged.snapshots[-1]
        publish_or_raise(self.table, staged, properties(newest), columns)
        return newest
