"""What happened during a trial, as the clients saw it, and the HTTP client that notes it."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# A connection that breaks and an error of the server are tried again, as a browser's outbox does.
RETRY_SECONDS = 0.5


class Journal:
    """Notes with a kind and the time, in memory and in a file. Any thread may note."""

    def __init__(self, path: Path) -> None:
        self.notes: list[dict[str, Any]] = []
        self._file, self._lock = path.open("a", encoding="utf-8"), threading.Lock()

    def note(self, kind: str, **values: Any) -> None:
        made = {"kind": kind, "at": time.time(), **values}
        with self._lock:
            self.notes.append(made)
            self._file.write(json.dumps(made, default=str) + "\n")
            self._file.flush()

    def all(self, *kinds: str) -> list[dict[str, Any]]:
        with self._lock:
            return [note for note in self.notes if note["kind"] in kinds]


@dataclass(frozen=True)
class Reply:
    """The answer to a request; status 0 if the connection broke."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Caller:
    """A person who calls the server, with an API key or the cookies of a browser."""

    name: str
    port: int
    journal: Journal
    headers: Mapping[str, str]
    over: Callable[[], bool]

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> Reply:
        """Send a request once. A body of bytes is sent as it is, with the given headers; other
        bodies are sent as JSON."""
        begun, content = time.time(), body
        sent = {"Host": f"127.0.0.1:{self.port}", **self.headers, **(headers or {})}
        if body is not None and not isinstance(body, bytes):
            content, sent = json.dumps(body).encode(), {"Content-Type": "application/json", **sent}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, content, sent)
            response = connection.getresponse()
            raw = response.read()
            reply = Reply(response.status, _parse(raw, response), dict(response.getheaders()))
        except (OSError, http.client.HTTPException) as error:
            reply = Reply(0, type(error).__name__)
        finally:
            connection.close()
        told = str(reply.body)[:200] if reply.status in (0, 409) or reply.status >= 500 else ""
        self.journal.note(
            "request", who=self.name, method=method, path=path[:80], status=reply.status,
            begun=begun, said=told,
        )  # fmt: skip
        return reply

    def insist(self, method: str, path: str, body: Any = None, **more: Any) -> Reply:
        """Send a request until it is answered without an error of the server and without being told
        when to send it again, or all is over."""
        while True:
            reply = self.ask(method, path, body, **more)
            if (0 < reply.status < 500 and "Retry-After" not in reply.headers) or self.over():
                return reply
            time.sleep(RETRY_SECONDS)


def _parse(raw: bytes, response: http.client.HTTPResponse) -> Any:
    if "json" in response.getheader("Content-Type", ""):
        return json.loads(raw) if raw else None
    return raw
