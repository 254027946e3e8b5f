"""Workers, servers and a Redis in processes of their own, for tests that kill them."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import redis
from django.db import connection

from judging.models import Reply, Run
from tests.conftest import lacking
from tests.services.scripted_evaluator import ScriptedEvaluator

ROOT = Path(__file__).resolve().parents[2]
# What was answered so shortly before a kill may not be on record yet.
UNWRITTEN = 0.25
# What a condition may take on a machine that is busy with other things; nothing is as slow.
PATIENCE = 180.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], bool], what: str, *, every: float = 0.02) -> None:
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, f"not within {PATIENCE:g} s: {what}"
        time.sleep(every)


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
            command,
            cwd=ROOT,
            env=self.environment | environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self._stack.callback(_end, process)
        return process

    def redis(self) -> subprocess.Popen[bytes]:
        server = shutil.which("redis-server") or lacking("redis-server is not here.")
        port = str(self.redis_port)
        process = self.start(server, "--port", port, "--bind", "127.0.0.1", "--save", "")
        client = redis.Redis(port=self.redis_port)
        wait_for(lambda: _answers(client), "Redis answers")
        return process

    def broker(self) -> str:
        """A Redis that was just started, and its address."""
        self.redis()
        return self.redis_url

    @property
    def redis_url(self) -> str:
        return f"redis://127.0.0.1:{self.redis_port}/0"

    def worker(self) -> subprocess.Popen[bytes]:
        celery = (sys.executable, "-m", "celery", "-A", "config", "worker", "--pool", "threads")
        return self.start(*celery, REDIS_URL=self.redis_url)

    def work_loop(self, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        """A worker that needs no broker: it looks for due work by itself and does nothing else."""
        script = str(Path(__file__).with_name("one_worker.py"))
        return self.start(sys.executable, script, *options, **environment)

    def server(self) -> subprocess.Popen[bytes]:
        return self.start(sys.executable, "manage.py", "serve", "--port", str(free_port()))

    def said(self) -> str:
        """What all processes wrote so far."""
        return (self.folder / "log.txt").read_text("utf-8", "replace")

    def close(self) -> None:
        self._stack.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """With the workers that it forked."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _answers(client: Any) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def reach(evaluator: ScriptedEvaluator, calls: float) -> None:
    wait_for(lambda: len(evaluator.log) >= calls, f"{calls:g} calls asked")


def finish(run: Run) -> None:
    def is_finished() -> bool:
        run.refresh_from_db()
        return run.state == Run.State.FINISHED

    wait_for(is_finished, "the run is finished", every=0.1)


def kill(process: subprocess.Popen[bytes]) -> float:
    """End a process as the kernel does when memory is out; the time, seconds since 1970."""
    killed = time.time()
    process.send_signal(signal.SIGKILL)
    process.wait()
    return killed


def kill_in_step(process: subprocess.Popen[bytes], evaluator: ScriptedEvaluator) -> float:
    """Kill a worker that is busy and has kept up for a while with what is answered; the time,
    seconds since 1970.

    On a busy machine it may get no turn for longer than it has to write a reply, which is not
    what is tested. One that writes late never keeps up for so long, and fails the test.
    """
    since: list[float] = []

    def keeps_up() -> bool:
        now = time.time()
        answers = [entry["answered"] for entry in list(evaluator.log) if entry["answered"]]
        written = Reply.objects.count()
        is_busy = bool(answers) and max(answers) > now - UNWRITTEN
        in_time = written >= sum(at < now - UNWRITTEN for at in answers)
        if not (is_busy and in_time) or time.time() - now > UNWRITTEN / 4:
            since.clear()
            return False
        since.append(now)
        in_step = written >= sum(at < now - UNWRITTEN / 2 for at in answers)
        return in_step and now - since[0] > 2 * UNWRITTEN

    wait_for(keeps_up, "replies are on record soon after they came", every=0.005)
    return kill(process)
