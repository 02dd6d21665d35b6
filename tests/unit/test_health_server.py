from __future__ import annotations

import json
import logging
import socket
import struct
import threading
import urllib.error
import urllib.request

import pytest

from icestream.errors import SettingsError, StateUnavailable
from icestream.observe import metrics
from icestream.observe.health import SILENT_AFTER_S, Beats, Health, Pulse, healthy
from icestream.observe.metrics import Samples, registry_of
from icestream.observe.server import HealthServer
from support.waiting import wait_for

LOOPBACK = ("127.0.0.1", 0)


def get(server: HealthServer, path: str) -> tuple[int, str]:
    host, port = server.address
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as err:
        return err.code, err.read().decode()


def test_live_and_ready_answer_for_themselves() -> None:
    with HealthServer(
        LOOPBACK, registry_of(), live=healthy, ready=lambda: Health(("worker is not running",))
    ) as server:
        assert get(server, "/live")[0] == 200
        status, body = get(server, "/ready")
    assert status == 503
    assert json.loads(body) == {"ok": False, "problems": ["worker is not running"]}


def test_a_probe_that_fails_is_an_answer() -> None:
    def unreachable() -> Health:
        raise StateUnavailable("the state database does not answer")

    with HealthServer(LOOPBACK, registry_of(), live=healthy, ready=unreachable) as server:
        status, body = get(server, "/ready")
    assert status == 503
    assert json.loads(body)["problems"] == ["the state database does not answer"]


def test_metrics_are_in_the_text_format() -> None:
    class Fixed:
        def collect(self) -> object:
            samples = Samples()
            samples.add(metrics.TABLE_PENDING_ROWS, 7, table="shop.orders")
            samples.add(metrics.TABLE_APPLIED, 9, table="shop.orders")
            return samples.families()

    with HealthServer(LOOPBACK, registry_of(Fixed()), live=healthy, ready=healthy) as server:  # type: ignore[arg-type]
        status, body = get(server, "/metrics")
    assert status == 200
    assert 'icestream_table_pending_rows{table="shop.orders"} 7.0' in body
    assert 'icestream_table_applied_rows_total{table="shop.orders"} 9.0' in body


def test_other_paths_name_the_right_ones() -> None:
    with HealthServer(LOOPBACK, registry_of(), live=healthy, ready=healthy) as server:
        status, body = get(server, "/elsewhere")
    assert status == 404
    assert "/metrics, /live, /ready" in body


def test_a_taken_port_is_a_readable_error() -> None:
    with socket.socket() as taken:
        taken.bind(LOOPBACK)
        taken.listen()
        server = HealthServer(taken.getsockname(), registry_of(), live=healthy, ready=healthy)
        with pytest.raises(SettingsError, match="metrics_addr: cannot listen on"):
            server.start()


def test_a_silent_loop_is_not_live() -> None:
    now = 100.0
    beats = Beats(clock=lambda: now)
    beats.beat("receiver", within_s=10)
    beats.beat("flusher", within_s=60)
    now = 130.0
    assert beats.check().problems == ("receiver has been silent for 30 s",)
    beats.end("receiver")
    assert beats.check().ok


def test_a_role_is_live_as_long_as_its_loop_turns_or_says_why_it_does_not() -> None:
    now = 0.0
    pulse = Pulse("capture", clock=lambda: now)
    assert pulse.live().ok and pulse.ready().problems == ("capture is starting",)
    pulse.beat()
    now = SILENT_AFTER_S
    assert pulse.live().ok and pulse.ready().ok
    now += 1
    assert pulse.live().problems == pulse.ready().problems == ("capture has been silent for 301 s",)
    pulse.pause("waits for PostgreSQL")
    assert pulse.live().ok and pulse.ready().problems == ("capture waits for PostgreSQL",)


def test_a_client_that_hangs_up_is_no_news(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    asked, hung_up = threading.Event(), threading.Event()

    def slow() -> Health:
        asked.set()
        assert hung_up.wait(30)
        return Health(facts={"long": "x" * 10_000_000})

    caplog.set_level(logging.DEBUG, "icestream.observe.server")
    with HealthServer(LOOPBACK, registry_of(), live=slow, ready=healthy) as server:
        with socket.create_connection(server.address) as client:
            client.sendall(b"GET /live HTTP/1.0\r\n\r\n")
            assert asked.wait(30)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # the end is a reset
        hung_up.set()
        wait_for(lambda: "request was not answered" in caplog.text, what="the server to notice")
    assert [record.levelname for record in caplog.records if "answered" in record.message] == ["DEBUG"]
    assert "Traceback" not in capfd.readouterr().err


def test_a_sample_has_exactly_its_labels() -> None:
    with pytest.raises(ValueError, match="icestream_table_lag_seconds"):
        Samples().add(metrics.TABLE_LAG, 1.0)
