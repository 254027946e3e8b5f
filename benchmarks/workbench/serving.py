"""A server as in production, and the CPU time of its processes and of its database."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import IO, Any

import yaml
from django.db import connection

from benchmarks.workbench.scratch import free_port

ROOT = Path(__file__).resolve().parents[2]
TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PATIENCE = 60


@dataclass(frozen=True)
class Server:
    """A server that is ready for requests."""

    port: int
    pid: int

    def processes(self) -> list[int]:
        """The server's own process and all child processes."""
        return _tree(self.pid)

    def cpu(self) -> float:
        """The CPU seconds of the server's processes; NaN if the system does not report them."""
        return sum(_seconds(pid) for pid in self.processes())


@contextmanager
def server(kind: str, settings: str = "config.settings") -> Iterator[Server]:
    """Serve PostgreSQL as in docker-compose.yml, or SQLite like `manage.py serve`."""
    port = free_port()
    command = _gunicorn(port) if kind == "postgresql" else _embedded(port)
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": settings}
    # Write to a file: a server that prints many errors would block on a pipe that nobody reads.
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=said
        ) as process,
    ):
        try:
            _wait(process, port, said)
            yield Server(port, process.pid)
        finally:
            _end(process)
            if words := _last(said):
                print(f"The server said in the end:\n{words}", file=sys.stderr)


@contextmanager
def worker(*options: str) -> Iterator[Server]:
    """Start a worker as in docker-compose.yml."""
    command = [sys.executable, "-m", *_words("worker"), *options]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield Server(0, process.pid)
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()


def backends_cpu() -> float:
    """Return the CPU seconds of PostgreSQL's backends for this database; NaN if they cannot be
    read.

    Only backends that are still running are counted; the server keeps its connections during the
    measurement.
    """
    if connection.vendor != "postgresql":
        return 0.0
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid()"
        )
        return sum(_seconds(pid) for (pid,) in cursor.fetchall())


def _gunicorn(port: int) -> list[str]:
    words = _words("web")
    words = [f"127.0.0.1:{port}" if before == "--bind" else word for before, word in _pairs(words)]
    return [sys.executable, "-m", *words, "--log-level", "warning"]


def _words(service: str) -> list[str]:
    services: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    words: list[str] = services[service]["command"]
    return words


def _pairs(words: list[str]) -> Iterator[tuple[str, str]]:
    yield from zip(["", *words], words, strict=False)


def _embedded(port: int) -> list[str]:
    return [sys.executable, "manage.py", "serve", "--port", str(port)]


def _wait(process: subprocess.Popen[bytes], port: int, said: IO[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError, HTTPException):
            asked = HTTPConnection("127.0.0.1", port, timeout=2)
            asked.request("GET", "/healthz")
            if asked.getresponse().status == 200:
                return
        time.sleep(0.1)
    process.kill()
    raise RuntimeError(f"The server does not answer: {_last(said)}")


def _last(said: IO[bytes]) -> str:
    said.seek(0)
    return said.read().decode(errors="replace")[-2000:]


def _tree(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    for parent in found:
        with suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def _seconds(pid: int) -> float:
    try:
        # After the name in parentheses, user and system time are the 12th and 13th word.
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return float("nan") if not Path("/proc/self/stat").exists() else 0.0
    return (int(words[11]) + int(words[12])) / TICK
