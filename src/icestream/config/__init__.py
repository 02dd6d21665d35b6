"""Typed, closed settings: a YAML file, the environment and the command line, with readable errors."""

from __future__ import annotations

from icestream.config.load import Loaded, load
from icestream.config.notices import Notice
from icestream.config.settings import Settings

__all__ = ["Loaded", "Notice", "Settings", "load"]
