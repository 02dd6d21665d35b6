"""Postgres, warehouse and catalog for people who have none, and the demo that runs on them."""

from __future__ import annotations
