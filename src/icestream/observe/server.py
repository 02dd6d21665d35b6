"""`/metrics`, `/live` and `/ready` over HTTP, in a thread of its own."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from icestream.errors import IcestreamError, SettingsError
from icestream.observe.health import Health, Probe
from icestream.observe.logs import fields, one_line

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

log = logging.getLogger(__name__)

_JSON = "application/json; charset=utf-8"

Page = Callable[[], tuple[HTTPStatus, str, bytes]]


class HealthServer:
    """Serves from `start()` (or entering the context) until `stop()`; port 0 picks a free one, see `address`."""

    def __init__(self, endpoint: tuple[str, int], registry: CollectorRegistry, *, live: Probe, ready: Probe) -> None:
        self._wanted = endpoint
        self._pages: dict[str, Page] = {
            "/metrics": lambda: _metrics_page(registry),
            "/live": lambda: _health_page(live),
            "/ready": lambda: _health_page(ready),
        }
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> tuple[str, int]:
        if self._server is None:
            return self._wanted
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def start(self) -> None:
        """Raises SettingsError when the address is taken or is not one of this machine."""
        self._server = _listen(self._wanted, self._pages)
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)
        self._thread.start()
        host, port = self.address
        log.info("serving metrics", extra=fields(host=host, port=port))

    def stop(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = self._thread = None

    def __enter__(self) -> HealthServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def require_free(endpoint: tuple[str, int]) -> None:
    """Raises as `HealthServer.start` would; serves nothing."""
    _listen(endpoint, {}).server_close()


def _listen(address: tuple[str, int], pages: dict[str, Page]) -> ThreadingHTTPServer:
    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that hung up is no news; anything else is a mistake of ours, told in a line."""
            level = logging.DEBUG if isinstance(sys.exception(), OSError) else logging.WARNING
            log.log(level, "request was not answered", exc_info=True, extra=fields(client=client_address))

    try:
        return Server(address, _handler(pages))
    except OSError as err:
        raise SettingsError(
            f"metrics_addr: cannot listen on {address[0]}:{address[1]}",
            hint="choose another address with METRICS_ADDR, or leave it empty to serve no metrics",
        ) from err


def _handler(pages: dict[str, Page]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(urlsplit(self.path).path)
            status, kind, body = page() if page else _not_found(pages)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Probes come every few seconds: silence when all is well."""

    return Handler


def _metrics_page(registry: CollectorRegistry) -> tuple[HTTPStatus, str, bytes]:
    from prometheus_client import exposition

    return HTTPStatus.OK, exposition.CONTENT_TYPE_LATEST, exposition.generate_latest(registry)


def _health_page(probe: Probe) -> tuple[HTTPStatus, str, bytes]:
    health = _ask(probe)
    status = HTTPStatus.OK if health.ok else HTTPStatus.SERVICE_UNAVAILABLE
    answer = {"ok": health.ok, "problems": list(health.problems), **health.facts}
    return status, _JSON, json.dumps(answer, default=str).encode() + b"\n"


def _ask(probe: Probe) -> Health:
    try:
        return probe()
    except IcestreamError as err:
        return Health((one_line(err),))


def _not_found(pages: dict[str, Page]) -> tuple[HTTPStatus, str, bytes]:
    return HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", f"try one of: {', '.join(pages)}\n".encode()
