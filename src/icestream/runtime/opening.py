"""Opening what the settings name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from icestream.config.settings import Settings
from icestream.sources.postgres.connection import Connection, connect
from icestream.state.database import Database


@contextmanager
def opened_state(settings: Settings) -> Iterator[Database]:
    """The state database; closed at the end of the block. Connects when it is first asked something."""
    with closing(Database(settings.state_conninfo(), settings.state.coordinator_schema)) as db:
        yield db


@contextmanager
def opened_source(settings: Settings) -> Iterator[Connection]:
    """An ordinary connection to the source. Raises SourceUnavailable or SourceError."""
    with closing(connect(settings.source.postgres.conninfo())) as conn:
        yield conn
