"""The folder of a demo: one demo at a time, and never somebody else's files."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from icestream.embedded.postgres import SUPERUSER, EmbeddedPostgres
from icestream.embedded.shop import TABLES
from icestream.errors import SettingsError

DATABASE = "shop"
_MARK = ".icestream-demo"
_NAME = "icestream_demo"


class DemoFolder:
    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.postgres = self.path / "postgres"
        self.warehouse = self.path / "warehouse"
        self.settings = self.path / "icestream.yaml"
        self.log = self.path / "icestream.log"

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Empty and ours for the length of the block; what an earlier demo left there is removed first.

        Raises SettingsError if the folder holds anything else or can't be made, or if a demo runs in it.
        """
        self._make()
        with (self.path / _MARK).open("w") as mark:
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as err:
                raise SettingsError(
                    f"a demo is running in {self.path}", hint="wait for it, or choose another --folder"
                ) from err
            self._remove_earlier()
            yield

    def write_settings(self, postgres: EmbeddedPostgres) -> None:
        """Short intervals, so that there is something to see; everything else is as it would be for real."""
        settings = {
            "tables": [{"name": name} for name in TABLES],
            "source": {
                "mode": "logical",
                "postgres": {
                    "host": "127.0.0.1",
                    "port": postgres.port,
                    "database": DATABASE,
                    "user": SUPERUSER,
                    "password_file": str(postgres.folder / "password"),
                },
                "logical": {"slot_name": _NAME, "publication_name": _NAME, "standby_interval": "1s"},
            },
            "sink": {
                "warehouse": str(self.warehouse),
                "flush_interval": "200ms",
                "materializer_interval": "1s",
            },
        }
        self.settings.write_text(yaml.safe_dump(settings, sort_keys=False))

    def _make(self) -> None:
        try:
            self._require_ours()
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / _MARK).touch()
        except OSError as err:
            raise SettingsError(
                f"the demo can't use the folder {self.path}: {err.strerror}",
                hint="choose another --folder for the demo",
            ) from err

    def _require_ours(self) -> None:
        if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / _MARK).exists():
            raise SettingsError(
                f"{self.path} is not empty and was not made by a demo", hint="choose another --folder for the demo"
            )

    def _remove_earlier(self) -> None:
        """A demo that was killed may have left its server running."""
        EmbeddedPostgres(self.postgres).stop()
        for entry in self.path.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry.name != _MARK:
                entry.unlink()
