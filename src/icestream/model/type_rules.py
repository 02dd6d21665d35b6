"""What the settings say about values: which of two possible types, and what happens to a value that does not fit."""

from __future__ import annotations

import enum
from typing import Literal

import msgspec


class Unfit(enum.StrEnum):
    """What becomes of a value that its Iceberg column can't hold.

    NULL     the column is NULL, the text is a dead letter
    STRING   the column is NULL, the text is in a companion column, `<column>_text`
    FAIL     the table is parked
    """

    NULL = "null"
    STRING = "string"
    FAIL = "fail"


class TypeRules(msgspec.Struct, frozen=True, omit_defaults=True):
    numeric: Literal["decimal(38,18)", "string"] = "decimal(38,18)"  # of a numeric without precision
    uuid: Literal["string", "uuid"] = "string"
    json: Literal["string", "variant"] = "string"
    arrays: Literal["list", "string"] = "list"
    unfit: Unfit = Unfit.NULL
    unfit_columns: dict[str, Unfit] = {}  # those with a policy of their own

    def policy(self, column: str) -> Unfit:
        return self.unfit_columns.get(column, self.unfit)


DEFAULT_RULES = TypeRules()
