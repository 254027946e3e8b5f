"""The health check of a container, against a server that answers what the test wants."""

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from config import healthcheck

ROOT = Path(healthcheck.__file__).resolve().parents[1]


class Site(BaseHTTPRequestHandler):
    """Notes what it is asked, and answers with the status that it was told."""

    status = 200
    asked: list[tuple[str, str, str]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["Host"], self.headers["X-Forwarded-Proto"]))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: the test looks at what was asked."""


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setenv("ALLOWED_HOSTS", ".blindspot.example,other.example")
    monkeypatch.setattr(Site, "asked", [], raising=False)
    with HTTPServer(("127.0.0.1", 0), Site) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_it_asks_for_the_named_parts_under_the_sites_own_name(port: int) -> None:
    assert healthcheck.main(port, ["database", "migrations"]) == 0
    path = "/readyz?only=database&only=migrations"
    assert Site.asked == [(path, "blindspot.example", "https")]


def test_what_is_not_ready_is_ill(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Site, "status", 503)
    assert healthcheck.main(port, []) == 1


def test_where_nobody_answers_it_is_ill() -> None:
    with HTTPServer(("127.0.0.1", 0), Site) as server:
        port = server.server_address[1]
    assert healthcheck.main(port, []) == 1


def test_it_gives_up_before_it_is_ended() -> None:
    compose = (ROOT / "docker-compose.yml").read_text()
    check = compose[compose.index("config/healthcheck.py") :]
    given = re.search(r"timeout: (\d+)s", check)
    assert given
    assert int(given[1]) > healthcheck.TIMEOUT_SECONDS
