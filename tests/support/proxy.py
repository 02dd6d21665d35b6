"""A TCP proxy in front of PostgreSQL that breaks connections at a chosen message."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

COMMIT = b"COMMIT\0"  # as psycopg sends it; `READ COMMITTED` is not meant
_CHUNK = 65536


@dataclass(frozen=True)
class _Fault:
    text: bytes
    reaches_server: bool
    then_refuse: bool


class Proxy:
    """Passes everything on until a fault is armed; an armed fault happens once."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._fault: _Fault | None = None
        self._refusing = False
        self._links: list[_Link] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def conninfo(self, direct: str) -> str:
        """The same database, reached through the proxy."""
        return make_conninfo(direct, host="127.0.0.1", port=self._listener.getsockname()[1])

    def lose_request(self, text: bytes) -> None:
        """Breaks the connection that is about to send `text`: the server never sees it."""
        self._fault = _Fault(text, reaches_server=False, then_refuse=False)

    def lose_answer(self, text: bytes, *, then_refuse: bool = False) -> None:
        """Breaks the connection once the server has answered `text`: the client never sees that answer."""
        self._fault = _Fault(text, reaches_server=True, then_refuse=then_refuse)

    def refuse(self) -> None:
        """Breaks all connections and takes no new ones."""
        with self._lock:
            self._refusing = True
            links, self._links = self._links, []
        for link in links:
            link.close()

    def accept_again(self) -> None:
        self._refusing = False

    def close(self) -> None:
        self._listener.close()
        self.refuse()

    def take_fault(self, data: bytes) -> _Fault | None:
        with self._lock:
            fault = self._fault
            if fault is None or fault.text not in data:
                return None
            self._fault = None
            self._refusing = fault.then_refuse
            return fault

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with self._lock:
                    if self._refusing:
                        client.close()
                        continue
                    self._links.append(_Link(self, client, socket.create_connection(self._target)))


class _Link:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._muted = False
        for direction in (self._pass_requests, self._pass_answers):
            threading.Thread(target=direction, daemon=True).start()

    def close(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _pass_requests(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(_CHUNK):
                fault = self._proxy.take_fault(data)
                if fault and not fault.reaches_server:
                    break
                self._muted = fault is not None
                self._server.sendall(data)
        self.close()

    def _pass_answers(self) -> None:
        with suppress(OSError):
            while (data := self._server.recv(_CHUNK)) and not self._muted:
                self._client.sendall(data)
        self.close()


@pytest.fixture
def proxy(database: str) -> Iterator[Proxy]:
    """In front of the test's database: `proxy.conninfo(database)` leads through it."""
    options = conninfo_to_dict(database)
    made = Proxy((str(options["host"]), int(options["port"] or 5432)))
    yield made
    made.close()
