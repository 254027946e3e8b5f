"""The engine in real processes that are killed while they work (design 3.7)."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
import redis
from django.db import connection

from judging.models import Reply, Request, Run
from tests.builders import make_project
from tests.conftest import lacking
from tests.judging.builders_judging import TWO_CALLS, make_endpoint, make_items, make_run, results
from tests.services.scripted_evaluator import Script, ScriptedEvaluator, running

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]
ROOT = Path(__file__).resolve().parents[2]

ITEMS = 1000
CALLS = 2 * ITEMS
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

    def server(self) -> subprocess.Popen[bytes]:
        return self.start(sys.executable, "manage.py", "serve", "--port", str(free_port()))

    def close(self) -> None:
        self._stack.close()


def _answers(client: Any) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


@pytest.fixture
def evaluator() -> Iterator[ScriptedEvaluator]:
    with running(Script(latency=0.05)) as evaluator:
        yield evaluator


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path)
    yield found
    found.close()


@pytest.fixture
def run(evaluator: ScriptedEvaluator) -> Run:
    project = make_project()
    make_items(project, ITEMS)
    return make_run(project, make_endpoint(evaluator, in_flight=32), TWO_CALLS)


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


def assert_asked_once(evaluator: ScriptedEvaluator, killed: float) -> None:
    """No request twice but those unanswered, or answered just before the kill."""
    seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in evaluator.log:
        seen[entry["digest"]].append(entry)
    assert len(seen) == CALLS
    for first, *again in seen.values():
        assert len(again) <= 1
        if again and first["answered"]:
            assert abs(killed - first["answered"]) < UNWRITTEN


def assert_all_on_record(run: Run) -> None:
    assert set(Request.objects.values_list("state", flat=True)) == {"answered"}
    assert Reply.objects.count() == CALLS
    assert sum(results(run).values()) == ITEMS
    assert results(run).keys() == {"detected", "undetected"}


@pytest.mark.redis
def test_a_run_survives_that_redis_and_then_its_worker_are_killed(
    evaluator: ScriptedEvaluator, processes: Processes, run: Run
) -> None:
    broker, worker = processes.redis(), processes.worker()
    reach(evaluator, 600)
    kill(broker)
    reach(evaluator, 1000)
    killed = kill(worker)
    assert Reply.objects.count() < CALLS
    processes.redis()
    processes.worker()
    finish(run)
    assert_all_on_record(run)
    assert_asked_once(evaluator, killed)


def test_a_run_survives_that_the_one_process_of_the_embedded_default_is_killed(
    evaluator: ScriptedEvaluator, processes: Processes, run: Run
) -> None:
    server = processes.server()
    reach(evaluator, 1000)
    killed = kill(server)
    assert Reply.objects.count() < CALLS
    processes.server()
    finish(run)
    assert_all_on_record(run)
    assert_asked_once(evaluator, killed)


@pytest.mark.redis
def test_a_worker_that_is_told_to_end_does_so_soon_and_leaves_nothing_leased(
    evaluator: ScriptedEvaluator, processes: Processes, run: Run
) -> None:
    evaluator.script = Script(faults={"hang": ""})
    processes.redis()
    worker = processes.worker()
    reach(evaluator, 32)
    worker.terminate()
    worker.wait(timeout=9)
    assert set(Request.objects.values_list("state", flat=True)) == {"waiting"}
