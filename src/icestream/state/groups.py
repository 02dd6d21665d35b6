"""The groups that read the log. Retention keeps what any registered group has not passed."""

from __future__ import annotations

from icestream.errors import StateError
from icestream.state.database import Database, Transaction
from icestream.state.own_rows import forget_rows
from icestream.state.pool import Row

# Capture adds tables for the groups that are there, a new group takes the tables that are there: one after the other.
_LOCK = "LOCK TABLE {schema}.log_group IN SHARE ROW EXCLUSIVE MODE"
_REGISTER = """
INSERT INTO {schema}.log_group (pipeline, group_name)
VALUES (%(pipeline)s, %(group)s)
ON CONFLICT (pipeline, group_name) DO NOTHING
"""
# Where they go is for the group's workers to say.
_TAKE_TABLES = """
INSERT INTO {schema}.tables
    (pipeline, group_name, table_name, configured_schema, configured_name, source_schema, source_name, pg_oid, members,
     state, target)
SELECT DISTINCT ON (table_name)
       pipeline, %(group)s, table_name, configured_schema, configured_name, source_schema, source_name, pg_oid,
       CASE WHEN state <> 'parked' THEN members END, 'pending', target
FROM {schema}.tables
WHERE pipeline = %(pipeline)s AND state <> 'removed'
ORDER BY table_name, target_by, group_name
ON CONFLICT (pipeline, group_name, table_name) DO NOTHING
"""
_NAMES = "SELECT group_name FROM {schema}.log_group WHERE pipeline = %(pipeline)s"
_ALIVE = """
SELECT worker_id, host, pid
FROM {schema}.consumer
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND expires_at > clock_timestamp()
ORDER BY worker_id
LIMIT 1
"""


class Groups:
    def __init__(self, db: Database, pipeline: str) -> None:
        self._db = db
        self._pipeline = pipeline

    def register(self, group: str) -> None:
        """From now on retention waits for this group, and every table of the log is its own too. May be repeated.

        A group that joins later works on its tables once `Tables.adopt` has said where they go.
        """
        with self._db.transaction() as tx:
            register_group(tx, self._pipeline, group)

    def remove(self, group: str) -> None:
        """Forgets everything that is remembered for the group; its Iceberg tables stay as they are.

        Raises StateError while it has a live worker.
        """
        scope = {"pipeline": self._pipeline, "group": group}
        with self._db.transaction() as tx:
            tx.execute(_LOCK)
            worker = tx.fetch_one(_ALIVE, scope)
            if worker is not None:
                raise StateError(
                    f"group {group!r} has a live worker: {worker['worker_id']} on {worker['host']}"
                    f" (pid {worker['pid']})",
                    hint="stop its workers first",
                )
            forget_rows(tx, self._db.schema, {"pipeline": self._pipeline, "group_name": group})

    def names(self) -> list[str]:
        return _sorted(self._db.fetch(_NAMES, {"pipeline": self._pipeline}))


def register_group(tx: Transaction, pipeline: str, group: str) -> None:
    tx.execute(_LOCK)
    tx.execute(_REGISTER, {"pipeline": pipeline, "group": group})
    tx.execute(_TAKE_TABLES, {"pipeline": pipeline, "group": group})


def registered_groups(tx: Transaction, pipeline: str) -> list[str]:
    """No other is registered or removed before the transaction ends."""
    tx.execute(_LOCK)
    return _sorted(tx.fetch(_NAMES, {"pipeline": pipeline}))


def _sorted(rows: list[Row]) -> list[str]:
    return sorted(row["group_name"] for row in rows)
