"""The work loop: every worker looks for due work itself, so losing messages loses nothing."""

import gc
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from celery import bootsteps
from django.db import close_old_connections, connections

from annotation.generation import perturber_jobs
from annotation.importing import jobs as imports
from annotation.items.snapshots import create
from annotation.settings import project_settings
from judging.archive import jobs
from judging.exporting import jobs as exporting_jobs
from judging.generation import bring_in
from judging.jobs import heartbeat
from judging.results import figures
from judging.runs.engine import ask, clock, lease

log = logging.getLogger(__name__)

# Seconds between two looks. Each look is one query for each kind.
LOOK_EVERY = 2.0
# This many slices run in parallel.
MAX_SLICES = 4
# Garbage collection thresholds: how many net allocations trigger a collection of the youngest
# generation, and how many of those trigger one of the older generations.
YOUNG_OBJECTS, OLDER_THRESHOLDS = 20_000, (20, 50)


@dataclass(frozen=True)
class WorkKind:
    """A kind of work: how to find the ids of due work, and how to do one for a slice.

    `work` leaves alone what another worker is doing.
    """

    name: str
    due: Callable[[datetime], Iterable[int]]
    work: Callable[[int], object]


KINDS = (
    WorkKind(
        "endpoint",
        lambda now: lease.find_due_endpoints(now),
        lambda pk: ask.run_overlapping_slice(pk),
    ),
    WorkKind(
        "job of settings",
        lambda now: project_settings.due_job_ids(now),
        lambda pk: project_settings.run_job(pk, stopped=ask.STOP.is_set),
    ),
    WorkKind("table of figures", lambda now: figures.list_due(now), lambda pk: figures.run_job(pk)),
    WorkKind(
        "import",
        lambda now: imports.due_job_ids(now),
        lambda pk: imports.run_job(pk, stopped=ask.STOP.is_set),
    ),
    WorkKind(
        "snapshot",
        lambda now: create.due_job_ids(now),
        lambda pk: create.run_job(pk, stopped=ask.STOP.is_set),
    ),
    WorkKind(
        "export",
        lambda now: exporting_jobs.list_due(now),
        lambda pk: exporting_jobs.run_job(pk, stopped=ask.STOP.is_set),
    ),
    WorkKind(
        "generation",
        lambda now: perturber_jobs.due_job_ids(now),
        lambda pk: perturber_jobs.run_job(pk, stopped=ask.STOP.is_set),
    ),
    WorkKind(
        "items of a run",
        lambda now: bring_in.find_due(now),
        lambda pk: bring_in.run_job(pk, stopped=ask.STOP.is_set),
    ),
    WorkKind(
        "archive of results",
        lambda now: jobs.list_due(now),
        lambda pk: jobs.run_job(pk, stopped=ask.STOP.is_set),
    ),
)


class WorkLoop:
    """A thread that looks for due work and does it, with or without a broker.

    Stopping it asks running slices to end, including those started by messages, and waits for them.
    """

    def __init__(self, every: float = LOOK_EVERY) -> None:
        self.every = every
        self.life = heartbeat.WorkerStatus()
        self._busy: set[tuple[WorkKind, int]] = set()
        self._stopped = threading.Event()
        self._again = threading.Event()
        self._slices = ThreadPoolExecutor(MAX_SLICES, thread_name_prefix="bell-slice")
        self._thread = threading.Thread(target=self._look, name="bell", daemon=True)

    def start(self) -> None:
        """Start the thread. It also tunes the garbage collector of the whole process. It cannot be
        started twice."""
        ask.STOP.clear()
        # Objects from start-up live as long as the process. Collecting through them all stopped
        # calls and pages for a quarter of a second, every few thousand calls.
        gc.freeze()
        # Calls and rows leave hardly any cycles behind, yet collecting some thousand young objects
        # took a tenth of a worker's time.
        gc.set_threshold(YOUNG_OBJECTS, *OLDER_THRESHOLDS)
        self._thread.start()

    def stop(self) -> None:
        """Ask all slices to end, and wait until the thread, its slices and the last calls have
        ended."""
        ask.STOP.set()
        self._stopped.set()
        self._again.set()
        self._thread.join()
        self._slices.shutdown(cancel_futures=True)
        ask.wait_for_last_calls()

    def _look(self) -> None:
        self._say(self._alive)
        while not self._wait():
            due = [self._begin(kind) for kind in KINDS]
            self.life.looked = None not in due
            self.life.idle = self.life.looked and not any(due)
            self._say(self._alive)
            close_old_connections()
        self._say(lambda: heartbeat.record_stop(self.life))
        connections.close_all()

    def _wait(self) -> bool:
        """Wait until the next look; return True if the loop is to stop."""
        self._again.wait(self.every)
        self._again.clear()
        return self._stopped.is_set()

    def _alive(self) -> None:
        heartbeat.record(self.life, clock.now())

    def _say(self, what: Callable[[], None]) -> None:
        """Update this worker's heartbeat; if the database is down, a later update reports it."""
        try:
            what()
        except Exception:
            log.exception("Saying whether this worker is alive failed.")

    def _begin(self, kind: WorkKind) -> int | None:
        """Start the due work of a kind; return how much there is, None if that is unknown."""
        try:
            due = {(kind, pk) for pk in kind.due(clock.now())}
        except Exception:
            # A database that is down for a while must not end the loop.
            log.exception("Looking for due work failed; looking again in %s s.", self.every)
            return None
        for one in due - self._busy:
            self._busy.add(one)
            self._slices.submit(self._work, *one)
        return len(due)

    def _work(self, kind: WorkKind, pk: int) -> None:
        begun = time.monotonic()
        try:
            kind.work(pk)
            self.life.ended(well=True)
        except Exception:
            self.life.ended(well=False)
            log.exception("Working on %s %s failed; trying again.", kind.name, pk)
        finally:
            connections.close_all()
            self._busy.discard((kind, pk))
            if time.monotonic() - begun > self.every:
                # The slice ended by its time, not for lack of work: without this, the evaluator
                # would be idle.
                self._again.set()


class WorkLoopStep(bootsteps.StartStopStep):
    """Start the work loop once the worker has a pool, and stop it before the pool waits for
    tasks."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self.bell = WorkLoop()

    def start(self, parent: Any) -> None:
        self.bell.start()

    def stop(self, parent: Any) -> None:
        self.bell.stop()

    def terminate(self, parent: Any) -> None:
        self.bell.stop()
