"""Fixtures live in the plugin modules under `support/`, one per subject."""

from __future__ import annotations

pytest_plugins = [
    "support.logging_setup",
    "support.lake",
    "support.postgres",
    "support.proxy",
    "support.state",
    "support.tls",
    "support.capturing",
    "support.processes",
    "support.shop",
]
