"""Response times of pages and memory use while an evaluator is called."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

EVERY = 0.4


@dataclass
class Seen:
    """The response times of each page in milliseconds, and the maximum memory of the processes in
    MB.
    """

    milliseconds: list[float] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    memory: float = 0.0


@contextmanager
def watched(
    port: int, paths: Sequence[str], cookie: str, processes: Callable[[], Sequence[int]]
) -> Iterator[Seen]:
    """Request the pages in turn, one every EVERY seconds, and measure the memory of the
    processes."""
    seen, stopped = Seen(), threading.Event()
    thread = threading.Thread(target=_look, args=(port, paths, cookie, processes, seen, stopped))
    thread.start()
    try:
        yield seen
    finally:
        stopped.set()
        thread.join()


def _look(
    port: int,
    paths: Sequence[str],
    cookie: str,
    processes: Callable[[], Sequence[int]],
    seen: Seen,
    stopped: threading.Event,
) -> None:
    caller = HTTPConnection("127.0.0.1", port, timeout=30)
    number = 0
    while not stopped.wait(EVERY):
        path = paths[number % len(paths)]
        begun = time.perf_counter()
        caller.request("GET", path, headers={"Cookie": cookie, "HX-Request": "true"})
        answer = caller.getresponse()
        answer.read()
        seen.milliseconds.append((time.perf_counter() - begun) * 1000)
        if answer.status != 200:
            seen.troubles.append(f"{path} answered {answer.status}")
        if number % 3 == 0:
            seen.memory = max(seen.memory, sum(map(_megabytes, processes())))
        number += 1
    caller.close()


def _megabytes(pid: int) -> float:
    """Return the memory of a process in MB: its own memory, and its share of shared
    memory (Pss).
    """
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0
