"""TLS in front of PostgreSQL, whose embedded server has none: the proxy ends it as a server would."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trustme
from psycopg.conninfo import conninfo_to_dict, make_conninfo

_REQUEST_BYTES = 8
_SSL_REQUEST = (80877103).to_bytes(4)
_CHUNK = 65536


class TlsProxy:
    """Takes only clients with a certificate of its own authority, as `hostssl … clientcert=verify-ca` does."""

    def __init__(self, target: tuple[str, int], folder: Path) -> None:
        self._target = target
        authority = trustme.CA()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(self._context)
        authority.configure_trust(self._context)
        self._context.verify_mode = ssl.CERT_REQUIRED
        self.authority = folder / "authority.pem"
        authority.cert_pem.write_to_path(self.authority)
        self.other_authority = folder / "other.pem"
        trustme.CA().cert_pem.write_to_path(self.other_authority)
        self.certificate, self.key = _write(authority.issue_cert("client@example.org"), folder)
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def conninfo(self, direct: str, **options: object) -> str:
        """The same database through TLS, verified in full, with a client certificate; `options` say otherwise."""
        ours = {
            "host": "localhost",
            "hostaddr": "127.0.0.1",
            "port": self._listener.getsockname()[1],
            "sslmode": "verify-full",
            "sslrootcert": self.authority,
            "sslcert": self.certificate,
            "sslkey": self.key,
        }
        return make_conninfo(direct, **{**ours, **options})

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with suppress(OSError), plain:
            while plain.recv(_REQUEST_BYTES)[4:] != _SSL_REQUEST:
                plain.sendall(b"N")
            plain.sendall(b"S")
            with (
                self._context.wrap_socket(plain, server_side=True) as client,
                socket.create_connection(self._target) as server,
            ):
                threading.Thread(target=_pass, args=(server, client), daemon=True).start()
                _pass(client, server)


def _pass(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)


def _write(certificate: trustme.LeafCert, folder: Path) -> tuple[Path, Path]:
    chain, key = folder / "client.pem", folder / "client.key"
    certificate.cert_chain_pems[0].write_to_path(chain)
    certificate.private_key_pem.write_to_path(key)
    key.chmod(0o600)
    return chain, key


@pytest.fixture
def tls(database: str, tmp_path: Path) -> Iterator[TlsProxy]:
    options = conninfo_to_dict(database)
    made = TlsProxy((str(options["host"]), int(options["port"] or 5432)), tmp_path)
    yield made
    made.close()
