"""The commands of docker-compose.yml, started as they stand against real servers.

Only the port differs, since every test takes a free one.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.services.visitor import SITE, Visitor

ROOT = Path(__file__).resolve().parents[2]
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(
    (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
)["services"]
PASSWORD = secrets.token_urlsafe(20)
Processes = list[subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def environment(
    postgres: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """What a deployment sets, for an empty database, with its tables made and files collected."""
    var = tmp_path_factory.mktemp("var")
    given = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "VAR_DIR": str(var),
        "DATABASE_URL": postgres,
        "REDIS_URL": redis_url,
        "SECRET_KEY": secrets.token_urlsafe(50),
        "SITE_URL": f"https://{SITE}",
        "ALLOWED_HOSTS": SITE,
        "METRICS_TOKEN": secrets.token_urlsafe(20),
        "PROMETHEUS_MULTIPROC_DIR": str(var / "metrics"),
    }
    for command in (SERVICES["migrate"]["command"], ["python", "manage.py", "collectstatic"]):
        manage(given, *command[2:], "--no-input")
    return given


@pytest.fixture
def started() -> Iterator[Processes]:
    processes: Processes = []
    yield processes
    for process in processes:
        process.terminate()
        process.wait(20)


def manage(environment: dict[str, str], *words: str, **more: str) -> None:
    command = [sys.executable, "manage.py", *words]
    subprocess.run(command, cwd=ROOT, env=environment | more, check=True, timeout=120)


def web(environment: dict[str, str], started: Processes) -> tuple[int, list[str]]:
    """The web command at a free port; that port, and its health check."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    service = SERVICES["web"]
    command = [part.replace("0.0.0.0:8000", f"127.0.0.1:{port}") for part in service["command"]]
    started.append(begin(command, environment, "web"))
    return port, [part.replace("8000", str(port)) for part in service["healthcheck"]["test"][1:]]


def begin(command: list[str], environment: dict[str, str], name: str) -> subprocess.Popen[bytes]:
    """A process whose log is a file of its name."""
    with (Path(environment["VAR_DIR"]) / f"{name}.log").open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)


def answers(command: list[str], environment: dict[str, str], seconds: float = 60) -> bool:
    """Whether a health check succeeds before the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not subprocess.run(command, cwd=ROOT, env=environment, capture_output=True).returncode:
            return True
        time.sleep(0.3)
    return False


def until(what: str, found: Any, seconds: float = 90) -> Any:
    deadline = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.3)
    return result


@pytest.mark.processes
def test_the_web_command_serves_and_its_health_check_sees_it(
    environment: dict[str, str], started: Processes
) -> None:
    port, check = web(environment, started)
    assert answers(check, environment)
    # No worker runs, which the web server's own health does not depend on.
    assert Visitor(port).get("/readyz")[0] == 503
    started[0].terminate()
    started[0].wait(20)
    assert not answers(check, environment, seconds=0.1)


@pytest.mark.processes
def test_the_worker_command_works_and_its_health_check_sees_it(
    environment: dict[str, str], started: Processes
) -> None:
    worker = SERVICES["worker"]
    check = worker["healthcheck"]["test"][1:]
    assert not answers(check, environment, seconds=0.1)
    started.append(begin(worker["command"], environment, "worker"))
    assert answers(check, environment)


@pytest.mark.processes
def test_what_a_page_asks_of_a_deployment_its_worker_makes(
    environment: dict[str, str], started: Processes
) -> None:
    """Some fifteen seconds: a web server and a worker start, and two commands before them."""
    manage(environment, "import_items", "examples/items.jsonl", "--project", "legs", "--create")
    who = {"DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    admin = ("--username", "admin", "--email", "admin@blindspot.example")
    manage(environment, "createsuperuser", "--no-input", *admin, **who)
    port, _ = web(environment, started)
    started.append(begin(SERVICES["worker"]["command"], environment, "worker"))
    visitor = Visitor(port)
    until("the service is ready", lambda: _status(visitor, "/readyz") == 200)
    assert visitor.post("/accounts/login/", login="admin", password=PASSWORD)[0] == 302
    page = "/projects/legs/exports/"
    assert visitor.post(page, table="items", format="jsonl")[0] == 302
    until("the export is made", lambda: "Download" in visitor.get(page)[1])
    status, text = visitor.get(page + "1/")
    assert status == 200
    look_at_the_numbers(environment, visitor)
    look_at_the_log(environment, visitor, text)


def look_at_the_numbers(environment: dict[str, str], visitor: Visitor) -> None:
    """Whichever process answers, it counts what all of them did."""
    told = {"Authorization": f"Bearer {environment['METRICS_TOKEN']}"}
    name = 'blindspot_http_requests_total{method="POST",route="projects/<slug:slug>/exports/"'
    found = [visitor.get("/metrics", **told)[1] for _ in range(6)]
    lines = [[line for line in one.splitlines() if line.startswith(name)] for one in found]
    assert all(one == lines[0] for one in lines)
    assert lines[0][0].endswith(" 1.0")


def look_at_the_log(environment: dict[str, str], visitor: Visitor, exported: str) -> None:
    """One JSON object a line, in which neither keys nor passwords nor texts of items stand."""
    folder = Path(environment["VAR_DIR"])
    lines = (folder / "web.log").read_text("utf-8").splitlines()
    assert len([line for line in map(json.loads, lines) if "/exports/" in line["message"]]) > 2
    # Of each request one line, and nothing twice.
    assert not [line for line in lines if '"django.request"' in line]
    log = "\n".join(lines) + (folder / "worker.log").read_text("utf-8")
    assert '"celery.worker' in log
    assert "[queues]" not in log
    texts = [str(json.loads(line)["prompt"]) for line in exported.splitlines()]
    keys = [*visitor.cookies.values(), PASSWORD, environment["SECRET_KEY"], *texts]
    assert len(keys) > 5
    assert [key for key in keys if key in log] == []


def _status(visitor: Visitor, path: str) -> int:
    try:
        return visitor.get(path)[0]
    except OSError:
        return 0
