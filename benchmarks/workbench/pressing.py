"""Eight API clients, each with a persistent connection, that call as fast as they get responses.

They use plain sockets, since the clients run on the same machine as the measured server. Each call
costs them about a tenth of a millisecond of CPU.
"""

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# One pair of calls: (milliseconds of the first, of the second, key of the stored label).
Pair = tuple[float, float, str]


@dataclass
class Pressed:
    """The results: milliseconds of each call, and keys of acknowledged labels."""

    first: list[float] = field(default_factory=list)
    second: list[float] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    cpu: float = 0.0

    @property
    def pairs(self) -> int:
        return len(self.second)

    @property
    def rate(self) -> float:
        return self.pairs / self.seconds if self.seconds else 0.0


class Trouble(Exception):
    """A response after which a client stops; the message says which response it was."""


class Caller:
    """A persistent connection with a minimal HTTP client."""

    def __init__(self, port: int, key: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = (
            f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
            "Content-Type: application/json\r\n"
        )

    def post(self, path: str, body: bytes = b"") -> tuple[int, bytes]:
        head = f"POST {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body)
        received = self._more(b"")
        while b"\r\n\r\n" not in received:
            received = self._more(received)
        headers, _, content = received.partition(b"\r\n\r\n")
        length = int(headers.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        while len(content) < length:
            content = self._more(content)
        return int(headers[9:12]), content

    def close(self) -> None:
        self._socket.close()

    def _more(self, received: bytes) -> bytes:
        part = self._socket.recv(65536)
        if not part:
            raise Trouble("the connection was closed")
        return received + part


def labelling(slug: str, answers: dict[str, object]) -> Callable[[Caller], Pair]:
    """Return the measured pair of calls: fetch the next item, and label it."""
    start, end = f"/api/v1/projects/{slug}/queue/next/", f"/api/v1/projects/{slug}/labels/"

    def pair(caller: Caller) -> Pair:
        begun = time.perf_counter()
        status, content = caller.post(start)
        shown = time.perf_counter()
        offer = json.loads(content)
        if status != 200 or "key" not in offer:
            raise Trouble(f"next: {status} {content[:200].decode()}")
        said = {"item": offer["item"]["key"], "revision": offer["revision"], "key": offer["key"]}
        body = json.dumps(said | {"answers": answers, "seconds": 1.5}).encode()
        sent = time.perf_counter()
        status, content = caller.post(end, body)
        stored = time.perf_counter()
        if status != 201:
            raise Trouble(f"label: {status} {content[:200].decode()}")
        key = json.loads(content)["submission"]
        return (shown - begun) * 1000, (stored - sent) * 1000, key

    return pair


def same_twice(path: str) -> Callable[[Caller], Pair]:
    """Return two calls of the same URL, to measure the overhead of the server."""

    def pair(caller: Caller) -> Pair:
        times = []
        for _ in range(2):
            begun = time.perf_counter()
            status, content = caller.post(path, b"{}")
            times.append((time.perf_counter() - begun) * 1000)
            if status != 200:
                raise Trouble(f"{path}: {status} {content[:200].decode()}")
        return times[0], times[1], ""

    return pair


def press(
    port: int, keys: list[str], pair: Callable[[Caller], Pair], *, seconds: float, most: int
) -> Pressed:
    """Run one client for each key, for `seconds` or until `most` pairs were made."""
    done = Pressed()
    end = time.perf_counter() + seconds
    people = [
        threading.Thread(target=_person, args=(Caller(port, key), pair, end, most, done))
        for key in keys
    ]
    clock, cpu = time.perf_counter(), time.process_time()
    for person in people:
        person.start()
    for person in people:
        person.join()
    done.seconds, done.cpu = time.perf_counter() - clock, time.process_time() - cpu
    return done


def _person(
    caller: Caller, pair: Callable[[Caller], Pair], end: float, most: int, done: Pressed
) -> None:
    while time.perf_counter() < end and done.pairs < most:
        try:
            first, second, key = pair(caller)
        except (Trouble, OSError, ValueError) as trouble:
            done.problems[str(trouble)] += 1
            break
        done.first.append(first)
        done.acknowledged.append(key)
        done.second.append(second)
    caller.close()


def quantiles(times: list[float]) -> dict[str, Any]:
    """Median, 95th percentile and maximum, in milliseconds."""
    ordered = sorted(times) or [float("nan")]
    names = (("p50", 0.5), ("p95", 0.95), ("max", 1.0))
    return {name: round(ordered[int(share * (len(ordered) - 1))], 1) for name, share in names}
