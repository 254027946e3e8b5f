"""`requirements/audit`: a known vulnerability fails, a service that is away is said to be away."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
VENV = Path(sys.executable).parent.parent
LOCK = "django==5.2.19 \\\n    --hash=sha256:{}\n".format("0" * 64)
NOTICE = {
    "id": "TEST-1",
    "modified": "2026-01-01T00:00:00Z",
    "summary": "made up",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "django"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99"}]}],
        }
    ],
}


@contextmanager
def service(vulnerable: str) -> Iterator[str]:
    """A service of advisories on loopback, which knows of one package."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            brief = {"vulns": [{"id": NOTICE["id"], "modified": NOTICE["modified"]}]}
            named = [one["package"]["name"] for one in asked]
            self._answer({"results": [brief if one == vulnerable else {} for one in named]})

        def do_GET(self) -> None:
            self._answer(NOTICE)

        def _answer(self, what: dict[str, Any]) -> None:
            text = json.dumps(what).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def audit(folder: Path, address: str, **more: str) -> subprocess.CompletedProcess[str]:
    lock = folder / "lock.txt"
    lock.write_text(LOCK.replace("5.2.19", metadata.version("django")), encoding="ascii")
    command = ["requirements/audit", str(VENV), str(lock), address]
    environment = os.environ | {"UV_HTTP_RETRIES": "0"} | more
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module", autouse=True)
def _packages_can_be_resolved(tmp_path_factory: pytest.TempPathFactory) -> None:
    """An index is wanted as for every set-up; without one there is nothing to ask about."""
    with service("") as address:
        said = audit(tmp_path_factory.mktemp("try"), address).stdout
    if "SKIPPED" in said:
        pytest.skip("No package index answers here.")


def test_a_known_vulnerability_fails_and_is_named(tmp_path: Path) -> None:
    with service("django") as address:
        run = audit(tmp_path, address)
    assert run.returncode == 1
    assert "TEST-1" in run.stdout
    assert "99" in run.stdout


def test_packages_without_one_pass_and_are_counted(tmp_path: Path) -> None:
    with service("another") as address:
        run = audit(tmp_path, address)
    assert run.returncode == 0
    assert "no known vulnerability in the 1 packages" in run.stdout


@pytest.mark.parametrize(("required", "code"), [("", 0), ("1", 2)])
def test_a_service_that_is_away_is_said_to_be_and_proves_nothing(
    tmp_path: Path, required: str, code: int
) -> None:
    run = audit(tmp_path, "http://127.0.0.1:1", AUDIT_REQUIRED=required)
    assert run.returncode == code
    assert "SKIPPED, since the service could not be asked" in run.stdout
    assert "no known vulnerability" not in run.stdout


def test_every_run_of_the_tests_of_a_clean_machine_asks() -> None:
    assert "\nmake audit\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
