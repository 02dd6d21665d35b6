"""Do source and state belong together? The same questions that capture asks when it starts, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icestream.capture.found import begins_anew, look, require_ours, require_same_source
from icestream.capture.options import CaptureOptions
from icestream.capture.selection import Choice, choose
from icestream.config.settings import Settings
from icestream.errors import StateVersionMismatch
from icestream.model.table import TableState
from icestream.runtime.catalog_check import tables_in_catalog
from icestream.runtime.opening import opened_source, opened_state
from icestream.sources.postgres.catalog import list_tables
from icestream.sources.postgres.connection import Connection
from icestream.sources.postgres.publication import find_publication
from icestream.sources.postgres.slot import COPY_ANEW
from icestream.state.cursors import Cursors
from icestream.state.database import Database
from icestream.state.migrate import require_current
from icestream.state.tables import TableRow, Tables
from icestream.verify.findings import Finding, error, warning


def check_agreement(settings: Settings) -> list[Finding]:
    """Raises what capture would raise."""
    options = CaptureOptions.from_settings(settings)
    with opened_source(settings) as conn, opened_state(settings) as db:
        known = db if _is_current(db) else None
        found = look(conn, options, known)
        require_same_source(found, options)
        require_ours(found, conn.info.dbname)
        rows = [] if known is None else Tables(known, options.pipeline).all()
        rows = [row for row in rows if row.state is not TableState.REMOVED]
        choices = choose(settings, list_tables(conn))
        reason = found.disagreement()
        if reason is not None:
            return [_missing_changes(reason, rows, choices)]
        published = _published(conn, options.publication)
        there = tables_in_catalog(settings, {choice.target.namespace for choice in choices})
        written = _written(known, settings, found.identity.epoch) if known and found.identity else []
        return [
            *_tables(rows, choices, published),
            *_orphans(rows, choices, there or frozenset()),
            *(_missing(written, choices, there) if there is not None else ()),
        ]


def _is_current(db: Database) -> bool:
    """A state that is not there, or older, is made current at the start; any other mismatch is told elsewhere."""
    try:
        require_current(db)
    except StateVersionMismatch:
        return False
    return True


def _missing_changes(reason: str, rows: Sequence[TableRow], choices: Sequence[Choice]) -> Finding:
    if begins_anew(_states_at_start(rows, choices)):
        return warning(f"{reason}: the log begins anew, and the tables are copied at its beginning")
    return error(f"{reason}; changes are missing, so the tables are parked", COPY_ANEW)


def _states_at_start(rows: Sequence[TableRow], choices: Sequence[Choice]) -> set[TableState]:
    """Once capture has made the rows equal to the settings."""
    wanted, known = {choice.target.key for choice in choices}, {row.key for row in rows}
    states = {row.state for row in rows if row.key in wanted}
    new = [choice.target for choice in choices if choice.target.key not in known]
    return states | {TableState.LIVE if target.skip_snapshot else TableState.PENDING for target in new}


def _written(db: Database, settings: Settings, epoch: str) -> list[TableRow]:
    """The live tables of this group that its workers have written since they were last asked for a copy."""
    cursors = Cursors(db, settings.pipeline, settings.state.group).all()
    rows = [row for row in Tables(db, settings.pipeline, settings.state.group).all() if row.state is TableState.LIVE]
    noted = [(row, cursors[row.key].cursor) for row in rows if row.key in cursors]
    return [row for row, cursor in noted if cursor.epoch == epoch and cursor.position > row.requested_lsn]


def _missing(rows: Sequence[TableRow], choices: Sequence[Choice], there: frozenset[str]) -> Iterator[Finding]:
    """An error, unlike other reasons to park a table: most likely the settings name the wrong place."""
    wanted = {choice.target.key for choice in choices}
    for row in rows:
        if row.target.key in wanted - there:
            yield error(
                f"the Iceberg table {row.target.key} is not in the catalog, and has been written before",
                "point `sink.warehouse` and `sink.catalog` (or `sink.catalog_uri`) to where it is; or, if it was"
                f" dropped, run `icestream resync {row.key}`",
                why="the table would be parked",
            )


def _orphans(rows: Sequence[TableRow], choices: Sequence[Choice], there: frozenset[str]) -> Iterator[Finding]:
    """Iceberg tables that are there before the pipeline has ever written them."""
    known = {row.key for row in rows}
    for key in sorted({choice.target.key for choice in choices} - known):
        if key in there:
            yield warning(
                f"the Iceberg table {key} is there already, and the state knows nothing of it",
                f"drop it, or choose another `sink.namespace`; or start, then let `icestream resync {key}` replace it",
                why="rows that this pipeline has not written are not overwritten unasked: the table would be parked",
            )


def _published(conn: Connection, name: str) -> frozenset[int]:
    publication = find_publication(conn, name)
    return frozenset(publication.whole if publication else ())


def _tables(rows: Sequence[TableRow], choices: Sequence[Choice], published: frozenset[int]) -> Iterator[Finding]:
    """A table that is parked, or is going to be, stops nobody else."""
    oids = {choice.target.key: choice.oid for choice in choices}
    for row in rows:
        if row.state is TableState.PARKED:
            yield warning(f"table {row.target.key} is parked: {row.reason}", row.hint)
        elif oids.get(row.key) not in (None, row.pg_oid):
            yield warning(
                f"table {row.source} was dropped and created again, so {row.key} is parked at the next start",
                f"start, then run `icestream resync {row.key}`",
            )
        elif row.state is TableState.LIVE and row.key in oids and row.pg_oid not in published:
            yield warning(
                f"table {row.source} is missing in the publication, or not whole: changes are not sent, so {row.key} is"
                " parked at the next start",
                f"start, then run `icestream resync {row.key}`",
            )
