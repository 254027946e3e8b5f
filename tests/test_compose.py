"""The deployment of docker-compose.yml: what it promises, and that its commands really run."""

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

ROOT = Path(__file__).resolve().parents[1]
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(
    (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
)["services"]
OURS = [name for name, service in SERVICES.items() if "build" in service]


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
        "SITE_URL": "https://blindspot.example",
        "ALLOWED_HOSTS": "blindspot.example",
    }
    for command in (SERVICES["migrate"]["command"], ["python", "manage.py", "collectstatic"]):
        subprocess.run([*command, "--no-input"], cwd=ROOT, env=given, check=True, timeout=120)
    return given


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.terminate()
        process.wait(15)


def answers(command: list[str], environment: dict[str, str], seconds: float = 40) -> bool:
    """Whether a health check succeeds before the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not subprocess.run(command, cwd=ROOT, env=environment, capture_output=True).returncode:
            return True
        time.sleep(0.3)
    return False


@pytest.mark.processes
def test_the_web_command_serves_and_its_health_check_sees_it(
    environment: dict[str, str], started: list[subprocess.Popen[bytes]]
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    web = SERVICES["web"]
    command = [part.replace("0.0.0.0:8000", f"127.0.0.1:{port}") for part in web["command"]]
    check = [part.replace("8000", port) for part in web["healthcheck"]["test"][1:]]
    assert not answers(check, environment, seconds=0.1)
    started.append(subprocess.Popen(command, cwd=ROOT, env=environment))
    assert answers(check, environment)


@pytest.mark.processes
def test_the_worker_command_works_and_its_health_check_sees_it(
    environment: dict[str, str], started: list[subprocess.Popen[bytes]]
) -> None:
    worker = SERVICES["worker"]
    check = worker["healthcheck"]["test"][1:]
    assert not answers(check, environment, seconds=0.1)
    started.append(subprocess.Popen(worker["command"], cwd=ROOT, env=environment))
    assert answers(check, environment)


@pytest.mark.parametrize("name", OURS)
def test_our_containers_can_write_nothing_and_gain_no_rights(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"migrate"}))
def test_every_service_that_stays_up_has_a_health_check(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"]


def test_the_image_does_not_run_as_root() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("USER")] == ["USER blindspot"]


@pytest.mark.parametrize("variable", ["SECRET_KEY", "POSTGRES_PASSWORD", "SITE_URL"])
def test_a_deployment_does_not_start_without_what_only_it_can_know(variable: str) -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert f"${{{variable}:?" in text
    assert f"${{{variable}:-" not in text
