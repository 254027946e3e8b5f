"""Every worker looks for due work by itself, so that losing every message loses nothing."""

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
from annotation.items.snapshots import jobs as snapshots
from annotation.settings import project_settings
from judging.archive import jobs
from judging.exporting import jobs as exporting_jobs
from judging.generation import bring_in
from judging.jobs import heartbeat
from judging.results import figures
from judging.runs.engine import ask, clock, lease

log = logging.getLogger(__name__)

# Seconds between two looks. Each is one query a kind.
LOOK_EVERY = 2.0
# So many slices run side by side.
MAX_SLICES = 4
# How many objects more than were dropped are made before young ones are looked through for
# cycles, and how often that is done before those that stayed, and the oldest, are.
YOUNG_OBJECTS, OLDER_THRESHOLDS = 20_000, (20, 50)


@dataclass(frozen=True)
class WorkKind:
    """A kind of work: how what is due is found, by its ids, and how one is worked on for a slice.

    What another worker is at is left to it by `work`.
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
        lambda now: snapshots.due_job_ids(now),
        lambda pk: snapshots.run_job(pk, stopped=ask.STOP.is_set),
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
    """A thread that looks for what is due and has it worked on, whether a broker is there or not.

    Stopping asks running slices to end, also those that messages started, and waits for them.
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
        ask.STOP.clear()
        # What start-up made lives as long as the process. Looking through it all for what can be
        # dropped stopped calls and pages for a quarter of a second, every few thousand calls.
        gc.freeze()
        # Of what calls and rows leave behind, hardly anything is a cycle, yet looking for cycles
        # among some thousand young objects took a tenth of a worker's time.
        gc.set_threshold(YOUNG_OBJECTS, *OLDER_THRESHOLDS)
        self._thread.start()

    def stop(self) -> None:
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
        """Until it is time to look; True once the bell is to stop."""
        self._again.wait(self.every)
        self._again.clear()
        return self._stopped.is_set()

    def _alive(self) -> None:
        heartbeat.record(self.life, clock.now())

    def _say(self, what: Callable[[], None]) -> None:
        """Tell the pages whether this worker is alive; a database that is away hears it later."""
        try:
            what()
        except Exception:
            log.exception("Saying whether this worker is alive failed.")

    def _begin(self, kind: WorkKind) -> int | None:
        """Have what is due of a kind worked on; how much that is, None if it cannot be said."""
        try:
            due = {(kind, pk) for pk in kind.due(clock.now())}
        except Exception:
            # A database that is away for a while may not end the looking.
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
                # It ended with its time rather than with its work: the evaluator would stand idle.
                self._again.set()


class WorkLoopStep(bootsteps.StartStopStep):
    """Starts the bell once the worker has a pool, and stops it before the pool waits for tasks."""

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
