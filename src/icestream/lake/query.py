"""Ad-hoc SQL over the catalog, with rows as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from icestream.errors import LakeError
from icestream.lake.java import JAVA_ERRORS, JavaError, error_message
from icestream.lake.session import Lake

_JSON_OPTIONS = {"ignoreNullFields": "false"}


@dataclass(frozen=True)
class QueryResult:
    """The rows of a query, fetched while they are iterated. A statement without rows has no columns."""

    columns: Sequence[str]
    _frame: DataFrame

    def texts(self) -> Iterator[tuple[str | None, ...]]:
        """Each row as Spark writes its values as text; NULL is None."""
        numbered = self._frame.toDF(*_numbered(self.columns))
        yield from _fetch(numbered.select(*(f.col(name).cast("string") for name in numbered.columns)))

    def json_objects(self) -> Iterator[str]:
        """Each row as the text of one JSON object."""
        for (row,) in _fetch(self._frame.select(f.to_json(f.struct("*"), _JSON_OPTIONS))):
            yield str(row)


def run_query(lake: Lake, query: str) -> QueryResult:
    """Raises LakeError with Spark's own first line when the query is wrong."""
    try:
        frame = lake.spark.sql(query)
    except JAVA_ERRORS as err:
        raise _refused(err) from None
    return QueryResult(frame.columns, frame)


def _numbered(columns: Sequence[str]) -> list[str]:
    """Names without dots, back-ticks and doubles, so that every column can be addressed."""
    return [f"c{number}" for number in range(len(columns))]


def _fetch(frame: DataFrame) -> Iterator[tuple[str | None, ...]]:
    try:
        for row in frame.toLocalIterator(prefetchPartitions=True):
            yield tuple(row)
    except JAVA_ERRORS as err:
        raise _refused(err) from None


def _refused(err: JavaError) -> LakeError:
    return LakeError(f"the query failed: {error_message(err)}")
