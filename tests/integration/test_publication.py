"""What the publication does to tables that are added to it."""

from __future__ import annotations

import psycopg
import pytest

from icestream.errors import SourceError, SourceUnavailable
from icestream.model.table import TableName
from icestream.sources.postgres import publication
from icestream.sources.postgres.connection import connect
from icestream.sources.postgres.publication import (
    drop_publication,
    ensure_publication,
    find_publication,
    forgets_additions,
)

A, B = TableName("public", "a"), TableName("public", "b")


@pytest.mark.parametrize(
    ("version", "expected"),
    [(140017, True), (140018, False), (160008, True), (170004, True), (170005, False), (180000, False)],
)
def test_servers_that_forget_added_tables_are_known(version: int, expected: bool) -> None:
    assert forgets_additions(version) is expected


@pytest.mark.parametrize("forgets", [True, False])
def test_a_table_is_added_once_its_open_transactions_have_ended_if_the_server_needs_that(
    database: str, monkeypatch: pytest.MonkeyPatch, forgets: bool
) -> None:
    monkeypatch.setattr(publication, "forgets_additions", lambda _version: forgets)
    monkeypatch.setattr(publication, "_LOCK_TIMEOUT", "50ms")
    with connect(database) as conn, psycopg.connect(database) as writer:
        conn.execute("CREATE TABLE a (id int PRIMARY KEY)")
        conn.execute("CREATE TABLE b (id int PRIMARY KEY)")
        ensure_publication(conn, "pub", [A], pipeline="shop")
        writer.execute("INSERT INTO a VALUES (1)")
        ensure_publication(conn, "pub", [A], pipeline="shop")
        writer.execute("INSERT INTO b VALUES (1)")
        if forgets:
            with pytest.raises(SourceUnavailable):
                ensure_publication(conn, "pub", [A, B], pipeline="shop")
            writer.commit()
        ensure_publication(conn, "pub", [A, B], pipeline="shop")
        found = find_publication(conn, "pub")
        assert found is not None and found.members == {A, B}


@pytest.mark.parametrize("other", ["pipe_b", "pipe_a2", "pipe"])
def test_the_publication_of_another_pipeline_is_neither_used_nor_dropped(database: str, other: str) -> None:
    with connect(database) as conn:
        conn.execute("CREATE TABLE a (id int PRIMARY KEY)")
        conn.execute("CREATE TABLE b (id int PRIMARY KEY)")
        ensure_publication(conn, "pub", [A], pipeline="pipe_a")
        before = find_publication(conn, "pub")
        for tables in ([A], [B], [A, B]):
            with pytest.raises(SourceError, match="belongs to pipeline 'pipe_a'") as refused:
                ensure_publication(conn, "pub", tables, pipeline=other)
            assert refused.value.hint and "`source.logical.publication_name`" in refused.value.hint
        assert not drop_publication(conn, "pub", pipeline=other)
        assert find_publication(conn, "pub") == before
        assert drop_publication(conn, "pub", pipeline="pipe_a")
