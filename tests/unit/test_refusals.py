"""What can never work is not waited for, on either side."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from icestream.config.refusals import reason_in
from icestream.errors import IcestreamError, Retry
from icestream.sources.postgres import connection
from icestream.state import failures
from icestream.state.database import Database

SERVER = 'connection failed: connection to server at "db" (10.0.0.1), port 5432 failed: '
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBiDCCAS+gAwIBAgIUS0uxvfQ4N3b5NDwHFPCdueNquJAwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOaWNlc3RyZWFtLXRlc3QwIBcNMjYxMTE4MTYzODA3WhgPMjEy
NjEwMjUxNjM4MDdaMBkxFzAVBgNVBAMMDmljZXN0cmVhbS10ZXN0MFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAEcIwimfwm31RRAzsN+86IiQfpFuUZxWr0zGLm5N7i
GyQ3eunreTe61ZnTRT/fmKlBoVfdjPYNcAmS/8JXC8P8/KNTMFEwHQYDVR0OBBYE
FFurpIPWG/JNrkHcBkTxeyJgYwu/MB8GA1UdIwQYMBaAFFurpIPWG/JNrkHcBkTx
eyJgYwu/MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgaLFRHKsB
xTfIlpZJi8Fh0O0JYe9aBCw6guSa7vea0r8CIEcDEPq+QWJVXJQ1onOcegWw2i8t
NHGz4d7ln5d9Z5ze
-----END CERTIFICATE-----
"""


def of_state(text: str) -> IcestreamError:
    return failures.connect_failure(psycopg.OperationalError(text), "host db")


BOTH_SIDES = pytest.mark.parametrize("failure", [connection.connect_failure, of_state], ids=["source", "state"])


@BOTH_SIDES
@pytest.mark.parametrize(
    "text",
    [
        'connection is bad: invalid integer value "notaport" for connection option "port"',
        'connection is bad: invalid port number: "99999"',
        'connection is bad: invalid sslmode value: "bogus"',
        'connection is bad: invalid "ssl_min_protocol_version" value: "foo"',
        "connection is bad: invalid SSL protocol version range",
        'connection is bad: definition of service "x" not found',
        "could not match 3 port numbers to 2 hosts",
        SERVER + 'could not load private key file "k.pem": bad decrypt',
        SERVER + 'private key file "k.pem" has group or world access; file must have permissions u=rw (0600)',
        SERVER + 'certificate present, but not private key file "k.pem"',
        SERVER + 'root certificate file "ca.pem" does not exist',
        SERVER + "SSL error: certificate verify failed",
        SERVER + 'server certificate for "a" does not match host name "b"',
        SERVER + "server does not support SSL, but SSL was required",
        SERVER + 'FATAL:  database "d" is not currently accepting connections',
    ],
)
def test_a_connection_that_can_never_be_made_is_final(failure: Callable[[str], IcestreamError], text: str) -> None:
    error = failure(text)
    assert error.retry is Retry.NEVER
    assert reason_in(text) in str(error) and "connection is bad" not in str(error)


@BOTH_SIDES
@pytest.mark.parametrize("text", [SERVER + "Connection refused", SERVER + "timeout expired", ""])
def test_a_server_that_may_come_back_is_waited_for(failure: Callable[[str], IcestreamError], text: str) -> None:
    assert failure(text).retry is Retry.LATER


@pytest.fixture
def tls_port() -> Iterator[int]:
    """A server that is willing to speak TLS and says no more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_say_yes, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]


def _say_yes(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            client.recv(8)
            client.sendall(b"S")


@pytest.mark.parametrize("mode", [0o600, 0o644], ids=["not a key", "readable by others"])
def test_a_key_that_libpq_does_not_take_is_final(tls_port: int, tmp_path: Path, mode: int) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    certificate.write_text(CERTIFICATE)
    key.write_text("no key\n")
    key.chmod(mode)
    conninfo = f"host=127.0.0.1 port={tls_port} user=u dbname=d sslmode=require sslcert={certificate} sslkey={key}"
    for connect in (connection.connect, lambda text: Database(text, "s").fetch_one("SELECT 1 AS one")):
        with pytest.raises(IcestreamError, match="private key file") as caught:
            connect(conninfo)
        assert caught.value.retry is Retry.NEVER
