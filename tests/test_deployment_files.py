"""What docker-compose.yml and the Dockerfile promise, read where no container engine is at hand."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from gunicorn.config import Config
from gunicorn.http.parser import RequestParser

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
DEPLOYED: dict[str, Any] = yaml.safe_load(COMPOSE)
SERVICES: dict[str, dict[str, Any]] = DEPLOYED["services"]
OURS = [name for name, service in SERVICES.items() if "build" in service]
OTHERS = sorted(set(SERVICES) - set(OURS))
SECRET = re.compile(r"KEY|PASSWORD|SECRET|TOKEN")
# Name and version to the last number, as 17.10 or 3.13.14-slim.
PINNED = re.compile(r"[a-z]+:\d+(\.\d+)+(-[a-z]+)?")


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's, with continued lines joined and comments left out."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines)).splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined)]


def stages() -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions():
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_no_container_can_write_or_gain_rights(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert not set(service) & {"privileged", "cap_add", "network_mode", "pid", "devices"}


@pytest.mark.parametrize("name", OTHERS)
def test_what_others_made_is_pinned_and_does_not_run_as_root(name: str) -> None:
    assert PINNED.fullmatch(SERVICES[name]["image"])
    assert SERVICES[name]["user"] not in {"root", "0"}


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"migrate"}))
def test_every_service_that_stays_up_has_a_health_check(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    assert check["test"][0] in {"CMD", "CMD-SHELL"}
    assert {"interval", "timeout", "retries"} <= set(check)


def test_only_the_web_server_can_be_reached_and_only_from_this_machine() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["web"]
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["web"]["ports"])


def test_nothing_starts_before_what_it_needs() -> None:
    for name in ("web", "worker"):
        waits = SERVICES[name]["depends_on"]
        assert waits["migrate"]["condition"] == "service_completed_successfully"
        assert waits["redis"]["condition"] == "service_healthy"
    assert SERVICES["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_no_secret_stands_in_the_compose_file(name: str) -> None:
    for variable, value in SERVICES[name].get("environment", {}).items():
        # What comes from outside is not here; of an address, only a password may not be.
        here = re.sub(r"\$\{[^}]*\}", "", str(value))
        if variable.endswith("_URL"):
            assert not re.search(r"//[^/@]*:[^/@]+@", here), variable
        elif SECRET.search(variable):
            assert not here, variable


@pytest.mark.parametrize("variable", ["SECRET_KEY", "POSTGRES_PASSWORD", "SITE_URL"])
def test_a_deployment_does_not_start_without_what_only_it_can_know(variable: str) -> None:
    assert f"${{{variable}:?" in COMPOSE
    assert f"${{{variable}:-" not in COMPOSE


def test_the_top_of_the_compose_file_says_what_can_be_set() -> None:
    head, _, rest = COMPOSE.partition("\nx-guarded:")
    taken = set(re.findall(r"\$\{(\w+):[?-]", rest))
    assert "EVALUATOR_HOSTS" in taken
    assert taken - set(re.findall(r"\b([A-Z_]+)=", head)) == set()


def test_without_containers_the_commands_are_the_same() -> None:
    page = (ROOT / "docs" / "operation.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith(".venv/bin/")]
    for name, program in (("web", "gunicorn"), ("worker", "celery")):
        [line] = [line for line in lines if line.startswith(f".venv/bin/{program} ")]
        told = " ".join(SERVICES[name]["command"]).replace("0.0.0.0:8000", "127.0.0.1:8000")
        # A proxy on the same machine, gunicorn trusts unasked.
        assert line == ".venv/bin/" + told.removesuffix(" --forwarded-allow-ips *")
    [web] = re.findall(r"^ExecStart=/srv/blindspot/app/(.*)$", page, re.MULTILINE)
    assert web in lines
    assert f"\nTimeoutStopSec={SERVICES['web']['stop_grace_period'].removesuffix('s')}\n" in page


def test_no_request_chooses_the_path_that_links_begin_with() -> None:
    config = Config()
    for name, value in runpy.run_path(str(ROOT / "gunicorn.conf.py")).items():
        if name in config.settings:
            config.set(name, value)
    config.set("forwarded_allow_ips", "*")
    sent = b"GET /x/docs/ HTTP/1.1\r\nHost: a\r\nSCRIPT_NAME: /x\r\nPATH_INFO: /y\r\n\r\n"
    request = next(RequestParser(config, [sent], ("127.0.0.1", 1)))
    assert request.headers == [("HOST", "a")]


def test_what_a_worker_makes_a_page_can_give() -> None:
    assert (
        SERVICES["web"]["volumes"] == SERVICES["worker"]["volumes"] == ["files:/srv/blindspot/var"]
    )
    assert "VAR_DIR=/srv/blindspot/var" in dict(stages()[-1])["ENV"]
    named = {
        volume.partition(":")[0] for each in SERVICES.values() for volume in each.get("volumes", [])
    }
    assert named == set(DEPLOYED["volumes"])


def test_every_stage_begins_with_one_pinned_image() -> None:
    images = {rest.partition(" ")[0] for word, rest in instructions() if word == "FROM"}
    assert len(stages()) > 1
    assert len(images) == 1
    assert all(PINNED.fullmatch(image) for image in images)


def test_the_image_does_not_run_as_root_and_cannot_change_its_program() -> None:
    last = stages()[-1]
    assert [rest for word, rest in last if word == "USER"] == ["blindspot"]
    after = [word for word, _ in last[[word for word, _ in last].index("USER") :]]
    assert set(after) == {"USER", "EXPOSE", "CMD"}
    assert not any("--chown" in rest or "chmod" in rest for word, rest in last if word != "USER")


def test_what_builds_the_image_does_not_stay_in_it() -> None:
    run = " ".join(rest for word, rest in stages()[-1] if word == "RUN")
    assert not re.search(r"pip|gcc|build-essential|requirements/install", run)
    assert "rm -rf /var/lib/apt/lists/*" in run


def test_no_secret_stands_in_the_image() -> None:
    kept = [rest for word, rest in instructions() if word in {"ENV", "ARG", "LABEL"}]
    assert not [rest for rest in kept if SECRET.search(rest)]
    assert not [word for word, _ in instructions() if word == "ADD"]
    # Made anew for one command, of a stage whose files alone go on.
    [made] = [rest for word, rest in instructions() if "SECRET_KEY" in rest]
    assert "SECRET_KEY=$(head -c 48 /dev/urandom | base64)" in made
    assert made not in [rest for _, rest in stages()[-1]]


@pytest.mark.parametrize("name", [".env", ".git", "var", ".venv"])
def test_nothing_of_this_machine_is_copied_into_the_image(name: str) -> None:
    assert name in (ROOT / ".dockerignore").read_text(encoding="utf-8").split()


def test_packages_are_installed_by_their_hashes() -> None:
    assert "requirements/install /opt/venv requirements/runtime.txt" in str(stages()[0])
    assert "--require-hashes" in (ROOT / "requirements" / "install").read_text(encoding="utf-8")
