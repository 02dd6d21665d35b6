"""Which workers of a group are alive. All times are the database's, so clocks of workers do not matter."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import datetime

from icestream.state.database import Database

# Rows that another starting worker is cleaning up right now are left to it.
_REMOVE_EXPIRED = """
DELETE FROM {schema}.consumer
WHERE (pipeline, group_name, worker_id) IN (
    SELECT pipeline, group_name, worker_id
    FROM {schema}.consumer
    WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND expires_at <= clock_timestamp()
    FOR UPDATE SKIP LOCKED)
"""
_ACQUIRE = """
INSERT INTO {schema}.consumer AS held (pipeline, group_name, worker_id, instance, expires_at, host, pid)
VALUES (%(pipeline)s, %(group)s, %(worker_id)s, %(instance)s, clock_timestamp() + %(ttl_s)s * interval '1 second',
        %(host)s, %(pid)s)
ON CONFLICT (pipeline, group_name, worker_id) DO UPDATE
SET instance = excluded.instance, expires_at = clock_timestamp() + %(ttl_s)s * interval '1 second',
    host = excluded.host, pid = excluded.pid,
    started_at = CASE WHEN held.instance = excluded.instance THEN held.started_at ELSE clock_timestamp() END
WHERE held.instance = excluded.instance OR held.expires_at <= clock_timestamp()
RETURNING expires_at
"""
_HOLDER = """
SELECT expires_at, instance::text, host, pid
FROM {schema}.consumer
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND worker_id = %(worker_id)s
"""
_RENEW = """
UPDATE {schema}.consumer
SET expires_at = clock_timestamp() + %(ttl_s)s * interval '1 second'
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND worker_id = %(worker_id)s AND instance = %(instance)s
  AND expires_at > clock_timestamp()
"""
_RELEASE = """
DELETE FROM {schema}.consumer
WHERE pipeline = %(pipeline)s AND group_name = %(group)s AND worker_id = %(worker_id)s AND instance = %(instance)s
"""
_WORKERS = """
SELECT worker_id, instance::text, host, pid, started_at, expires_at, expires_at > clock_timestamp() AS alive
FROM {schema}.consumer
WHERE pipeline = %(pipeline)s AND group_name = %(group)s
"""


@dataclass(frozen=True)
class Lease:
    worker_id: str
    instance: str
    expires_at: datetime


@dataclass(frozen=True)
class Held:
    """Another process holds the lease of this worker id."""

    expires_at: datetime
    instance: str
    host: str
    pid: int


@dataclass(frozen=True)
class Worker:
    worker_id: str
    instance: str
    host: str
    pid: int
    started_at: datetime
    expires_at: datetime
    alive: bool  # its lease has not ended


class Leases:
    """A lease belongs to one instance (a UUID minted per process) of a worker id, and only that one can renew it."""

    def __init__(self, db: Database, pipeline: str, group: str) -> None:
        self._db = db
        self._scope = {"pipeline": pipeline, "group": group}

    def acquire(self, worker_id: str, instance: str, ttl_s: float) -> Lease | Held:
        """Takes the lease if it is free, has ended, or is this instance's own. Removes ended leases of the group."""
        values = {
            **self._scope,
            "worker_id": worker_id,
            "instance": instance,
            "ttl_s": ttl_s,
            "host": socket.gethostname(),
            "pid": os.getpid(),
        }
        with self._db.transaction() as tx:
            tx.execute(_REMOVE_EXPIRED, values)
            if taken := tx.fetch_one(_ACQUIRE, values):
                return Lease(worker_id, instance, taken["expires_at"])
            holder = tx.fetch_one(_HOLDER, values)
        assert holder is not None  # the upsert met the row and keeps it locked
        return Held(**holder)

    def renew(self, worker_id: str, instance: str, ttl_s: float) -> bool:
        """False if the lease has ended, even if nobody has taken it: others may have divided its tables already."""
        values = {**self._scope, "worker_id": worker_id, "instance": instance, "ttl_s": ttl_s}
        return self._db.execute(_RENEW, values) == 1

    def release(self, worker_id: str, instance: str) -> None:
        """Ends the lease at once; does nothing if it is no longer this instance's."""
        self._db.execute(_RELEASE, {**self._scope, "worker_id": worker_id, "instance": instance})

    def active(self) -> list[str]:
        return [worker.worker_id for worker in self.workers() if worker.alive]

    def workers(self) -> list[Worker]:
        """All workers that are noted, ended ones too, sorted by id."""
        workers = [Worker(**row) for row in self._db.fetch(_WORKERS, self._scope)]
        return sorted(workers, key=lambda worker: worker.worker_id)  # by code point: the same in every worker
