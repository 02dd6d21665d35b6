"""What a refused connection means: come back later, or a person has to act."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict

from icestream.errors import SourceUnavailable
from icestream.sources.postgres.connection import connect_failure, pinned

SERVER = 'connection to server at "db" (10.0.0.1), port 5432 failed: '


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('FATAL:  password authentication failed for user "u"', "source.postgres"),
        ('FATAL:  database "d" does not exist', "source.postgres"),
        ('FATAL:  role "u" does not exist', "source.postgres"),
        ('FATAL:  no pg_hba.conf entry for replication connection from host "h"', "source.postgres"),
        ("fe_sendauth: no password supplied", "source.postgres"),
        ("SSL error: certificate verify failed", "source.postgres"),
        ("server does not support SSL, but SSL was required", "source.postgres"),
        ("FATAL:  permission denied to start WAL sender", "REPLICATION"),
        ("FATAL:  must be superuser or replication role to start walsender", "REPLICATION"),
        ("FATAL:  unsupported startup parameter: replication", "server itself"),
        ("FATAL:  unsupported startup parameter: options", "server itself"),
    ],
)
def test_a_refusal_is_final_and_says_where_to_look(text: str, hint: str) -> None:
    error = connect_failure(SERVER + text + "\n")
    assert not isinstance(error, SourceUnavailable)
    assert error.hint and hint in error.hint
    assert text.removeprefix("FATAL:").strip() in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "Connection refused\n\tIs the server running on that host?",
        "FATAL:  the database system is starting up",
        "timeout expired",
        'could not translate host name "db" to address: Temporary failure in name resolution',
        "server closed the connection unexpectedly",
        "FATAL:  sorry, too many clients already",
        "FATAL:  remaining connection slots are reserved for roles",
        'FATAL:  number of requested standby connections exceeds "max_wal_senders" (currently 1)',
    ],
)
def test_what_can_pass_is_tried_again(text: str) -> None:
    assert isinstance(connect_failure(SERVER + text), SourceUnavailable)


def test_pinned_settings_win_over_given_options_and_keep_the_rest() -> None:
    options = str(conninfo_to_dict(pinned("host=h options='-c work_mem=1MB -c timezone=CET'"))["options"])
    assert "work_mem=1MB" in options
    assert options.rindex("timezone=UTC") > options.rindex("timezone=CET")


def test_given_parameters_win_over_our_defaults() -> None:
    assert conninfo_to_dict(pinned("host=h connect_timeout=3"))["connect_timeout"] == "3"
