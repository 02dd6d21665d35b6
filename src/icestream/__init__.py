"""Icestream keeps Apache Iceberg tables equal to PostgreSQL tables and to streams of events."""

from __future__ import annotations

__version__ = "0.1.0"
