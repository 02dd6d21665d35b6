"""Composition only: which roles run, in which order they start and stop."""

from __future__ import annotations
