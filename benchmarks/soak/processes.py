"""The processes of an installation under trial, each of which is started again when it ends."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psycopg

from benchmarks.workbench.scratch import free_port

ROOT = Path(__file__).resolve().parents[2]
RESTART_SECONDS = 1.0
# Seconds that a service may take to start on a busy machine.
PATIENCE = 90.0


class Missing(Exception):
    """A program that the trial needs is not installed; the message says what to do."""


class Supervised:
    """A process that is started again a second after it ends, as `restart: unless-stopped` does.

    `user` starts it as another user, if this process may do so.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        user: str | None = None,
        cwd: Path = ROOT,
    ) -> None:
        self.name = name
        self._command, self._environment = list(command), dict(environment)
        self._log, self._user, self._cwd = folder / f"{name}.log", user, cwd
        self._stopped = threading.Event()
        self._start()
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def children(self) -> list[int]:
        with suppress(OSError):
            path = Path(f"/proc/{self.pid}/task/{self.pid}/children")
            return [int(child) for child in path.read_text().split()]
        return []

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the process and everything that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def replace(self, *, cwd: Path) -> None:
        """Ask the process to end, and let it start again with the code in another folder."""
        self._cwd = cwd
        self.kill(signal.SIGTERM)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End the process for good."""
        self._stopped.set()
        self.kill(number)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()

    def _start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._cwd,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=self._user,
            )

    def _watch(self) -> None:
        while not self._stopped.is_set():
            if self._process.poll() is not None and not self._stopped.wait(RESTART_SECONDS):
                self._start()
            self._stopped.wait(0.05)


class Postgres:
    """A PostgreSQL server of our own on a free port, so that it can be crashed."""

    def __init__(self, folder: Path) -> None:
        programs = _find_postgresql()
        user = _unprivileged_user()
        # Its user must be able to reach the folder, which is not the case below `folder`.
        self._data = Path(tempfile.mkdtemp(prefix="blindspot-soak-pg-"))
        if user:
            shutil.chown(self._data, user)
        self.port = free_port()
        quiet = {"stdout": subprocess.DEVNULL, "check": True, "user": user, "cwd": "/"}
        data = str(self._data / "data")
        subprocess.run(
            [f"{programs}/initdb", "-D", data, "-U", "blindspot", "-A", "trust", "-E", "UTF8",
             "--no-sync"],
            **quiet,
        )  # fmt: skip
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "",
                   "max_connections": "200", "shared_buffers": "256MB"}  # fmt: skip
        command = [f"{programs}/postgres", "-D", data, "-p", str(self.port)]
        command += [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        self.server = Supervised(
            "postgresql", command, folder, os.environ, user=user, cwd=Path("/")
        )

    def wait_until_ready(self) -> None:
        wait_for(lambda: self._answers("postgres"), "PostgreSQL answers")
        self.create("soak")

    def create(self, name: str) -> str:
        """Create a database, and return its address."""
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.address(name)

    def crash(self) -> None:
        """End all its processes at once; it recovers from its log when it starts again."""
        with suppress(ProcessLookupError):
            os.kill(self.server.pid, signal.SIGQUIT)

    def cut_connections(self) -> None:
        """End all connections to the database."""
        with psycopg.connect(self.address("soak"), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = 'soak' AND pid <> pg_backend_pid()"
            )

    def close(self) -> None:
        self.server.stop(signal.SIGINT)
        shutil.rmtree(self._data, ignore_errors=True)

    def address(self, name: str) -> str:
        return f"postgresql://blindspot@127.0.0.1:{self.port}/{name}"

    def _answers(self, name: str) -> bool:
        try:
            psycopg.connect(self.address(name), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def _find_postgresql() -> str:
    """Return the folder with the server's programs."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders:
        raise Missing("PostgreSQL's server programs are not here (`apt install postgresql`).")
    return str(folders[-1])


def _unprivileged_user() -> str | None:
    """PostgreSQL refuses to run as root; return the user to run it as, or None for the current."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            pwd.getpwnam(name)
            return name
    raise Missing("PostgreSQL cannot run as root, and there is no user postgres.")


def redis_command(port: int) -> list[str]:
    """The command of a Redis that keeps nothing."""
    program = shutil.which("redis-server")
    if program is None:
        raise Missing("redis-server is not here (`apt install redis-server`).")
    return [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]


def faketime_library() -> str:
    """The library that gives a process another clock; "" if it is not installed."""
    return next(map(str, sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), "")


# The clock of the worker is changed, but not that of the programs that it starts. The library
# breaks `time.sleep`, so here that is another wait.
CELERY_WITH_OWN_CLOCK = (
    "import os, select, sys, time; os.environ.pop('LD_PRELOAD', None);"
    " time.sleep = lambda seconds: select.select([], [], [], seconds) and None;"
    " from celery.__main__ import main; sys.argv = ['celery', *sys.argv[1:]]; main()"
)


def celery_command(name: str, *, own_clock: bool = False) -> list[str]:
    """The command of a worker as in docker-compose.yml."""
    start = ["-c", CELERY_WITH_OWN_CLOCK] if own_clock else ["-m", "celery"]
    options = ["--quiet", "--app", "config", "worker", "--loglevel", "INFO", "-n", f"{name}@%h"]
    options += ["--without-gossip", "--without-mingle"]
    return [sys.executable, *start, *options]


def wait_for(condition: Callable[[], bool], what: str, *, seconds: float = PATIENCE) -> None:
    """Wait until the condition is true; raises TimeoutError."""
    ends = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > ends:
            raise TimeoutError(f"Not within {seconds:g} s: {what}.")
        time.sleep(0.1)
