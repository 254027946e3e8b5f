"""What goes wrong during a trial, at random, while people and workers go on."""

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg

from benchmarks.soak.installation import Installation
from benchmarks.soak.journal import Journal
from benchmarks.soak.people import Trial

# Seconds between two faults. On SQLite, each one stops everything.
PAUSE = {"postgresql": (3.0, 9.0), "sqlite": (6.0, 18.0)}
FULL_SECONDS = 15.0


def cause_faults(place: Installation, trial: Trial, journal: Journal, seed: int) -> None:
    """Cause one fault after another until the trial is calm. Each kind comes once before any comes
    again, and the disk is full once."""
    chance, kinds = random.Random(seed), _list_faults(place)
    waiting: list[str] = []
    while not trial.calm.wait(chance.uniform(*PAUSE[place.kind])):
        if not waiting:
            waiting = sorted(kinds)
            chance.shuffle(waiting)
        name = waiting.pop()
        try:
            kinds[name](chance)
        except psycopg.OperationalError as error:
            journal.note("fault", what=name, failed=str(error)[:100])
            continue
        journal.note("fault", what=name, failed="")
        if name == "fill the disk":
            del kinds[name]


def _list_faults(place: Installation) -> dict[str, Callable[[random.Random], None]]:
    kinds: dict[str, Callable[[random.Random], None]] = {}
    if place.disk.is_mount():
        kinds["fill the disk"] = lambda _: _fill(place)
    if place.postgres is None:
        return kinds | {"kill the server": lambda _: place.processes["server"].kill()}
    postgres = place.postgres
    workers = [name for name in place.processes if name.startswith("worker")]
    return kinds | {
        "kill a web process": lambda chance: _kill_child(place, chance),
        "kill the web server": lambda _: place.processes["server"].kill(),
        "kill a worker": lambda chance: place.processes[chance.choice(workers)].kill(),
        "kill another worker": lambda chance: place.processes[chance.choice(workers)].kill(),
        "empty Redis": lambda _: place.processes["redis"].kill(),
        "cut the database connections": lambda _: postgres.cut_connections(),
        "crash PostgreSQL": lambda _: postgres.crash(),
    }


def _kill_child(place: Installation, chance: random.Random) -> None:
    if children := place.processes["server"].children():
        with suppress(ProcessLookupError):
            os.kill(chance.choice(children), signal.SIGKILL)


def _fill(place: Installation) -> None:
    """Leave no room for exports for a while."""
    filler = place.disk / "filler"
    with suppress(OSError), filler.open("wb") as out:
        while True:
            out.write(b"x" * 65_536)
            out.flush()
    time.sleep(FULL_SECONDS)
    filler.unlink()
