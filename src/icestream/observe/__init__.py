"""Logs, metrics, health and the small HTTP server that shows them."""

from __future__ import annotations
