"""The scripted evaluator, which runs as a separate process, and its log of requests."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SERVER = Path(__file__).parents[2] / "tests" / "services" / "scripted_evaluator.py"


@dataclass(frozen=True)
class Evaluator:
    """A scripted evaluator at an address; its log has a line for each finished request."""

    address: str
    log: Path

    def calls(self, model: str) -> list[tuple[float, float, str]]:
        """Return for each request to a model the times (Unix time) at which it was received and
        answered, and its digest.
        """
        lines = map(json.loads, self.log.read_text("utf-8").splitlines())
        return [
            (line["received"], line["answered"], line["digest"])
            for line in lines
            if line["model"] == model and line["answered"]
        ]


@dataclass(frozen=True)
class Steady:
    """The calls per second from the first request to the last reply, and the share of the maximum
    that is possible with `in_flight` calls of `latency` seconds.
    """

    calls: int
    rate: float
    share: float


@contextmanager
def evaluator(folder: Path, latency: float, tail: float = 0) -> Iterator[Evaluator]:
    """An evaluator that takes `latency` seconds for each reply, but `tail` seconds for one in
    twenty, if there is a tail."""
    log = folder / "requests.jsonl"
    command = [sys.executable, str(SERVER), "--latency", str(latency), "--log", str(log)]
    command += ["--tail", str(tail)]
    # The evaluator runs on the same machine as the measured program, but must not read its
    # settings.
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            yield Evaluator(json.loads(server.stdout.readline())["address"], log)
        finally:
            server.terminate()


def steady(calls: list[tuple[float, float, str]], *, in_flight: int, latency: float) -> Steady:
    """Compute the figures of the calls of one run."""
    seconds = max(answered for _, answered, _ in calls) - min(came for came, _, _ in calls)
    rate = len(calls) / seconds
    return Steady(len(calls), rate, rate * latency / in_flight)


def occupied(calls: list[tuple[float, float, str]], *, in_flight: int, settled: float) -> float:
    """Compute the share of the places that were taken by a call, on average from `settled` seconds
    after the first request until the last one."""
    begin, end = min(came for came, _, _ in calls) + settled, max(came for came, _, _ in calls)
    taken = sum(max(0.0, min(answered, end) - max(came, begin)) for came, answered, _ in calls)
    return taken / (in_flight * (end - begin))
