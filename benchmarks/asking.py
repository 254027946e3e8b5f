"""How close a worker comes to what an evaluator of known latency allows, replies on record.

    python benchmarks/asking.py [--calls 2000] [--in-flight 64] [--latency 0.2]

Runs on a database of its own beside the one in DATABASE_URL (default: SQLite) and asks the
scripted evaluator, which is a process of its own. Prints one line of JSON for the engine and one
for a bare loop with the same client and no database: calls a second and their share of the
ceiling (in flight / latency), both between the first and the last fifth of the calls, seconds in
all, and milliseconds of this process's CPU a call.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django

ROOT = Path(__file__).resolve().parents[1]
if not __package__:
    sys.path.insert(0, str(ROOT))

from benchmarks.scripted import SERVER, call_all  # noqa: E402  (needs the path above)

Figures = dict[str, Any]

# The share of the calls at the beginning and at the end that is not looked at.
RAMP = 0.2


@contextmanager
def evaluator(latency: float, log: Path) -> Iterator[str]:
    """The address of a scripted evaluator that logs each request to a file."""
    command = [sys.executable, str(SERVER), "--latency", str(latency), "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["address"]
        server.terminate()


@contextmanager
def database() -> Iterator[None]:
    """Django on an empty database that is dropped in the end."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("EVALUATOR_HOSTS", "127.0.0.1")
    django.setup()
    from django.db import connection

    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        yield
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def measured(
    prepare: Callable[[str], Callable[[], object]], options: argparse.Namespace
) -> Figures:
    """The figures of some work that makes all the calls; preparing it is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "requests.jsonl"
        with evaluator(options.latency, log) as address:
            work = prepare(address)
            clock, cpu = time.perf_counter(), time.process_time()
            work()
            clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
        received = sorted(json.loads(line)["received"] for line in log.read_text().splitlines())
    assert len(received) == options.calls, f"{len(received)} calls were made"
    ramp = int(RAMP * len(received))
    steady = received[ramp:-ramp]
    rate = (len(steady) - 1) / (steady[-1] - steady[0])
    return {
        "calls_per_second": round(rate, 1),
        "share_of_ceiling": round(rate * options.latency / options.in_flight, 3),
        "seconds": round(clock, 2),
        "cpu_ms_per_call": round(cpu / options.calls * 1000, 3),
    }


def engine(address: str, options: argparse.Namespace) -> Callable[[], object]:
    """A planned run of one call an item, to be worked on as a worker does."""
    from judging import asking, runs
    from tests.builders import make_project
    from tests.judging.builders_judging import make_endpoint, make_items, make_run

    project = make_project()
    make_items(project, options.calls)
    endpoint = make_endpoint(address, in_flight=options.in_flight)
    run = make_run(project, endpoint)
    runs.plan(run)

    def work() -> None:
        while not runs.finish_if_done(run):
            asking.work(endpoint.pk)

    return work


def bare(address: str, options: argparse.Namespace) -> Callable[[], object]:
    """The same number of calls with the same client, whose replies are dropped."""
    return lambda: asyncio.run(call_all(address, options.calls, options.in_flight))


def main() -> None:
    """Measure both once and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    options = parser.parse_args()
    with database():
        for prepare in (engine, bare):
            figures = measured(lambda address, made=prepare: made(address, options), options)
            print(json.dumps({"what": prepare.__name__, **figures}))


if __name__ == "__main__":
    main()
