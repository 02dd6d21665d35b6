from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request

import pytest

from icestream.errors import SettingsError, StateUnavailable
from icestream.observe import metrics
from icestream.observe.health import Beats, Health, healthy
from icestream.observe.metrics import Samples, registry_of
from icestream.observe.server import HealthServer

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


def test_a_sample_has_exactly_its_labels() -> None:
    with pytest.raises(ValueError, match="icestream_table_lag_seconds"):
        Samples().add(metrics.TABLE_LAG, 1.0)
