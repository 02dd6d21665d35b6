"""Forgets a pipeline: the state side of `icestream cleanup`."""

from __future__ import annotations

from icestream.state.database import Database
from icestream.state.migrate import own_tables
from icestream.state.own_rows import forget_rows

_REFUSE_CLAIMS = "DELETE FROM {schema}.flushed_lsn WHERE pipeline = %(pipeline)s"
_OTHERS = "SELECT pipeline FROM {schema}.pipeline_meta UNION SELECT pipeline FROM {schema}.tables"
_PATHS = """
SELECT s3_path AS path FROM {schema}.log_index WHERE pipeline = %(pipeline)s
UNION SELECT path FROM {schema}.staged_intent WHERE pipeline = %(pipeline)s
UNION SELECT path FROM {schema}.garbage WHERE pipeline = %(pipeline)s
"""
_NOT_EMPTY = """
SELECT FROM pg_depend
JOIN pg_namespace AS schema ON schema.oid = refobjid AND refclassid = 'pg_namespace'::regclass
WHERE schema.nspname = %(schema)s
"""
_DROP_SCHEMA = "DROP SCHEMA {schema}"


def forget_pipeline(db: Database, pipeline: str) -> bool:
    """Removes every row of the pipeline, and our tables with them if no other pipeline uses them.

    The schema goes, too, unless it holds something that is not ours; True if it did.
    Staged files are not touched. Raises StateVersionMismatch if there is no coordination schema of ours.
    """
    with db.transaction() as tx:
        tx.execute(_REFUSE_CLAIMS, {"pipeline": pipeline})  # first: a claim that is under way waits for it
        forget_rows(tx, db.schema, {"pipeline": pipeline})
        if tx.fetch(_OTHERS):
            return False
        tx.execute("DROP TABLE " + ", ".join(f"{{schema}}.{table}" for table in own_tables()))
        if tx.fetch(_NOT_EMPTY, {"schema": db.schema}):
            return False
        tx.execute(_DROP_SCHEMA)
        return True


def staged_paths(db: Database, pipeline: str) -> list[str]:
    """Every file of the pipeline that the state knows of: in the log, announced, or given up."""
    return [row["path"] for row in db.fetch(_PATHS, {"pipeline": pipeline})]
