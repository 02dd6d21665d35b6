"""The rows of a pipeline, or of one of its groups, in whatever tables of ours have some: the schema says which."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from icestream.state.database import Transaction
from icestream.state.migrate import own_tables

_TABLES_WITH = """
SELECT relname AS table_name
FROM pg_class
JOIN pg_namespace ON pg_namespace.oid = relnamespace
JOIN pg_attribute ON attrelid = pg_class.oid
WHERE nspname = %(schema)s AND relname = ANY(%(tables)s) AND attname = ANY(%(columns)s) AND NOT attisdropped
GROUP BY relname
HAVING count(*) = %(count)s
"""


def forget_rows(tx: Transaction, schema: str, owner: Mapping[str, str]) -> None:
    """Deletes the rows whose columns have these values from every table of ours that has these columns."""
    condition = " AND ".join(f"{column} = %({column})s" for column in owner)
    for table in _tables_with(tx, schema, owner.keys()):
        tx.execute(f"DELETE FROM {{schema}}.{table} WHERE {condition}", owner)  # noqa: S608


def _tables_with(tx: Transaction, schema: str, columns: Collection[str]) -> list[str]:
    """In the order of their making, so that whoever does the same at the same time waits and does not deadlock."""
    own = own_tables()
    values = {"schema": schema, "tables": own, "columns": list(columns), "count": len(columns)}
    return sorted((row["table_name"] for row in tx.fetch(_TABLES_WITH, values)), key=own.index)
