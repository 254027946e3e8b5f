import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes
ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(port: int, var: Path, **settings: str) -> subprocess.Popen[str]:
    """`manage.py serve` on the embedded default, with everything it keeps in `var`."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    return subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--port", str(port)],
        cwd=ROOT,
        env={**kept, "VAR_DIR": str(var), **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def status(address: str) -> int:
    """The HTTP status of a page, waiting for the server to come up; 0 after two minutes."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            return urllib.request.urlopen(address, timeout=20).status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            time.sleep(0.1)
    return 0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    port = free_port()
    process = start(port, tmp_path)
    yield process, port
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_process_answers_and_stops_in_order_within_ten_seconds(
    server: tuple[subprocess.Popen[str], int], number: signal.Signals
) -> None:
    """Some ten seconds: a server starts on an empty folder and makes all tables."""
    process, port = server
    assert status(f"http://127.0.0.1:{port}/accounts/login/") == 200
    process.send_signal(number)
    said, errors = process.communicate(timeout=10)
    assert process.returncode == 0
    assert "Nobody can sign in yet. Choose the password of the site admin, 'admin', at http" in said
    assert "Traceback" not in errors


def test_pages_find_their_style_sheets_beside_a_redis_too(redis_url: str, tmp_path: Path) -> None:
    """Some ten seconds: a server starts on an empty folder and makes all tables."""
    port = free_port()
    process = start(port, tmp_path, REDIS_URL=redis_url, SECRET_KEY=secrets.token_hex(32))
    try:
        assert status(f"http://127.0.0.1:{port}/accounts/login/") == 200
    finally:
        process.terminate()
        process.communicate(timeout=120)


def test_a_port_that_is_taken_is_named_with_the_remedy(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        process = start(port, tmp_path)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert f"127.0.0.1:{port}" in errors
    assert "--port" in errors
