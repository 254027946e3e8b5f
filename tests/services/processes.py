"""Workers, servers and a Redis in processes of their own, for tests that kill them."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import redis
from django.db import connection

from judging.models import Run
from tests.conftest import lacking
from tests.services.scripted_evaluator import ScriptedEvaluator

ROOT = Path(__file__).resolve().parents[2]
# What was answered so shortly before a kill may not be on record yet.
UNWRITTEN = 0.25


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def database_url() -> str:
    """The database of this test, as another process names it."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}"))


class Processes:
    """Starts processes that work on the test's database, and ends what is left of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.redis_port = free_port()
        self._stack = ExitStack()
        self.environment = {
            name: value for name, value in os.environ.items() if name != "REDIS_URL"
        }
        self.environment |= {
            "VAR_DIR": str(folder),
            "DATABASE_URL": database_url(),
            "SECRET_KEY": "x" * 50,
            "EVALUATOR_HOSTS": "127.0.0.1",
        }

    def start(self, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self.folder / "log.txt").open("ab"))
        process = subprocess.Popen(
            command, cwd=ROOT, env=self.environment | environment, stdout=log, stderr=log
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def redis(self) -> subprocess.Popen[bytes]:
        server = shutil.which("redis-server") or lacking("redis-server is not here.")
        port = str(self.redis_port)
        process = self.start(server, "--port", port, "--bind", "127.0.0.1", "--save", "")
        client = redis.Redis(port=self.redis_port)
        wait_for(lambda: _answers(client), 10, "Redis answers")
        return process

    def worker(self) -> subprocess.Popen[bytes]:
        broker = f"redis://127.0.0.1:{self.redis_port}/0"
        celery = (sys.executable, "-m", "celery", "-A", "config", "worker", "--pool", "threads")
        return self.start(*celery, REDIS_URL=broker)

    def bell(self, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        """A worker that needs no broker: it looks for due work by itself and does nothing else."""
        script = str(Path(__file__).with_name("one_worker.py"))
        return self.start(sys.executable, script, *options, **environment)

    def server(self) -> subprocess.Popen[bytes]:
        return self.start(sys.executable, "manage.py", "serve", "--port", str(free_port()))

    def close(self) -> None:
        self._stack.close()


def _answers(client: Any) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def reach(evaluator: ScriptedEvaluator, calls: int) -> None:
    wait_for(lambda: len(evaluator.log) >= calls, 60, f"{calls} calls asked")
    # Not at the moment at which calls come in: what was answered has to be on record soon after.
    time.sleep(0.4)


def finish(run: Run) -> None:
    def is_finished() -> bool:
        run.refresh_from_db()
        return run.state == Run.State.FINISHED

    wait_for(is_finished, 90, "the run is finished")


def kill(process: subprocess.Popen[bytes]) -> float:
    """End a process as the kernel does when memory is out; the time, seconds since 1970."""
    killed = time.time()
    process.send_signal(signal.SIGKILL)
    process.wait()
    return killed
