"""How close the evaluator client comes to the maximum rate for a server of known latency.

    python -m benchmarks.scripted --calls 5000 --in-flight 256 --latency 0.2

Starts the scripted evaluator as a process and prints JSON: calls per second, their share of the
ceiling (in flight / latency), and milliseconds of this process's CPU per call.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from judging.evaluators.limits import Limiter, Limits, MemoryLedger
from judging.evaluators.providers import PROVIDERS, Target, connect

SERVER = Path(__file__).parents[1] / "tests" / "services" / "scripted_evaluator.py"


@dataclass(frozen=True)
class Text:
    """A prompt of about the typical length."""

    user: str
    system: str = "You examine answers."
    parts: dict[str, Any] = field(default_factory=dict)


async def call_all(address: str, calls: int, in_flight: int, *, model: str = "m") -> float:
    """Send `calls` different requests and return the seconds that this takes."""
    provider = PROVIDERS["openai_compatible"]
    texts = (Text(f'{number} {"word " * 400} {{"score": N}}') for number in range(calls))
    bodies = iter([provider.body(model=model, parameters={}, prompt=text) for text in texts])
    limiter = Limiter(MemoryLedger(Limits(in_flight=in_flight)))
    target = Target(address, "no-key")

    async def caller(session: aiohttp.ClientSession, waiting: Iterator[bytes]) -> None:
        for body in waiting:
            async with limiter.slot():
                await provider.ask(session, target, body)

    async with connect(["127.0.0.1"]) as session:
        start = time.perf_counter()
        await asyncio.gather(*(caller(session, bodies) for _ in range(in_flight)))
        return time.perf_counter() - start


def main() -> None:
    """Measure once and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    options = parser.parse_args()
    command = [sys.executable, str(SERVER), "--latency", str(options.latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = json.loads(server.stdout.readline())["address"]
            cpu = time.process_time()
            seconds = asyncio.run(call_all(address, options.calls, options.in_flight))
            cpu = time.process_time() - cpu
        finally:
            server.terminate()
    rate = options.calls / seconds
    figures = {
        "calls_per_second": round(rate, 1),
        "share_of_ceiling": round(rate * options.latency / options.in_flight, 3),
        "cpu_ms_per_call": round(cpu / options.calls * 1000, 3),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
