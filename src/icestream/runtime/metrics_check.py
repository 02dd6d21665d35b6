"""Can the metrics be served where the settings say?"""

from __future__ import annotations

import urllib.request
from http.client import HTTPException

from prometheus_client.parser import text_string_to_metric_families

from icestream.config.settings import Settings
from icestream.errors import SettingsError
from icestream.observe import metrics
from icestream.observe.logs import one_line
from icestream.observe.server import require_free
from icestream.verify.findings import Finding, error

_TIMEOUT_S = 2.0


def check_metrics(settings: Settings) -> list[Finding]:
    """An address that is taken by a process of this pipeline is no finding: it runs, and serves them there."""
    endpoint = settings.metrics_endpoint()
    if endpoint is None:
        return []
    try:
        require_free(endpoint)
    except SettingsError as err:
        if _pipeline_at(endpoint) == settings.pipeline:
            return []
        return [error(f"{err}: {one_line(err.__cause__ or err)}", err.hint)]
    return []


def _pipeline_at(endpoint: tuple[str, int]) -> str | None:
    """The pipeline whose metrics are served there."""
    host, port = endpoint
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=_TIMEOUT_S) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
    except (OSError, ValueError, HTTPException):
        return None
    samples = [sample for family in families for sample in family.samples if sample.name == metrics.INFO.name]
    return samples[0].labels.get("pipeline") if samples else None
