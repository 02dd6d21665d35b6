"""The operations of a staged change and the names of its columns."""

from __future__ import annotations

import enum


class Op(enum.StrEnum):
    INSERT = "I"
    UPDATE = "U"
    DELETE = "D"
    TRUNCATE = "T"
    SET = "S"  # a row whose earlier existence is unknown (polling, event upserts)


class StagingFormat(enum.StrEnum):
    """How a staged file holds its rows: a text column for each of the source, or one JSON document."""

    COLUMNS = "columns"
    JSON = "json"


OP = "_op"
LSN = "_lsn"  # end of the commit record
TS = "_ts"  # commit time
XID = "_xid"
UNCHANGED = "_unchanged_cols"
DATA = "_data"  # the new row, one text field per source column
OLD = "_old"  # the old key, or the whole old row under REPLICA IDENTITY FULL
