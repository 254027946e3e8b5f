"""The work loop. Every worker looks for due work itself, so no work is lost if a message is
lost."""

import gc
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from celery import bootsteps
from django.db import close_old_connections, connections

from annotation.db import clock
from annotation.items import search_index
from annotation.jobs import job_queue, scratch
from judging.jobs import heartbeat, job_list
from judging.results import figures
from judging.runs.engine import ask, lease
from judging.webhooks import delivery

log = logging.getLogger(__name__)

# Seconds between two looks for due work. Each look needs one query for each kind of work.
LOOK_EVERY = 2.0
# This many slices run in parallel.
MAX_SLICES = 6
# Jobs take at most this many of them, and jobs of one kind at most so many: an import may run for
# an hour, and neither calls to evaluators nor exports must wait for it.
MAX_JOBS, MAX_JOBS_OF_A_KIND = 3, 2
# So may a table of figures. They have slices of their own, since people wait for most of them.
MAX_FIGURES = 2
# On a machine that a worker shares with the server, pages come first. At 256 calls in flight on two
# cores, this made a slow page 10 ms faster and calls no slower.
NICENESS = 5


@dataclass(frozen=True)
class WorkKind:
    """A kind of work. `due` finds the ids of due work, in the order in which it is begun, and
    `work` works on one id for a slice of time.

    `work` skips work that another worker is already doing. At most `at_once` ids are worked on at a
    time, if that is limited, as it is for jobs. What is limited counts as a job unless it
    `is_beside_jobs`.
    """

    name: str
    due: Callable[[datetime], Iterable[int]]
    work: Callable[[int], object]
    at_once: int | None = None
    is_beside_jobs: bool = False

    @property
    def is_job(self) -> bool:
        """True if it counts as a job."""
        return self.at_once is not None and not self.is_beside_jobs


def list_kinds() -> list[WorkKind]:
    """List all kinds of work of a worker: calls to evaluators, tables of figures, the search index,
    webhooks, and all kinds of job."""
    return [
        WorkKind("endpoint", lease.find_due_endpoints, ask.run_overlapping_slice),
        WorkKind(
            "table of figures",
            figures.list_due,
            figures.run_job,
            MAX_FIGURES,
            is_beside_jobs=True,
        ),
        WorkKind(
            "search index",
            search_index.find_due,
            partial(search_index.run_slice, stopped=ask.STOP.is_set),
        ),
        # One number for all webhooks, so that one slice of a worker at a time sends them.
        WorkKind(
            "webhooks", delivery.find_due, partial(delivery.run_slice, stopped=ask.STOP.is_set)
        ),
        *(
            WorkKind(
                f"{name} job",
                kind.due or partial(job_queue.due_job_ids, name),
                partial(kind.run, stopped=ask.STOP.is_set),
                MAX_JOBS_OF_A_KIND,
            )
            for name, kind in job_list.JOB_KINDS.items()
            if kind.run
        ),
    ]


class WorkLoop:
    """A thread that looks for due work and does it, with or without a broker.

    `stop` asks all running slices to end, even slices started by messages, and waits for them.
    """

    def __init__(self, every: float = LOOK_EVERY) -> None:
        self.every = every
        self.life = heartbeat.WorkerStatus()
        # What is being worked on, by kind and id; true for jobs.
        self._busy: dict[tuple[str, int], bool] = {}
        # When a job of each kind began last.
        self._begun: dict[str, float] = {}
        self._left_over = False
        self._stopped = threading.Event()
        self._again = threading.Event()
        self._slices = ThreadPoolExecutor(MAX_SLICES, thread_name_prefix="work-slice")
        self._thread = threading.Thread(target=self._look, name="work-loop", daemon=True)

    def start(self) -> None:
        """Start the thread, which cannot be started twice."""
        ask.STOP.clear()
        scratch.delete_leftovers()
        # Objects from start-up live as long as the process. Scanning all of these objects delayed
        # calls and pages by a quarter of a second, every few thousand calls.
        gc.freeze()
        self._thread.start()

    def stop(self) -> None:
        """Ask all slices to end, then wait for the thread, its slices and the last calls to end."""
        ask.STOP.set()
        self._stopped.set()
        self._again.set()
        self._thread.join()
        self._slices.shutdown(cancel_futures=True)
        ask.wait_for_last_calls()

    def _look(self) -> None:
        self._say(self._alive)
        while not self._wait():
            self._left_over = False
            due = self._begin_all()
            self.life.looked = None not in due
            self.life.idle = self.life.looked and not any(due)
            self._say(self._alive)
            close_old_connections()
        self._say(lambda: heartbeat.record_stop(self.life))
        connections.close_all()

    def _wait(self) -> bool:
        """Wait until the next look for work; return True if the loop must stop."""
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
            log.exception("Reporting that this worker is alive failed.")

    def _begin_all(self) -> list[int | None]:
        """Start the due work of all kinds, by one reading of the clock; see `_begin`."""
        try:
            now = clock.now()
        except Exception:
            log.exception("Reading the clock failed; looking again in %s s.", self.every)
            return [None]
        # Kinds of jobs take turns, so that none waits for the last job of another.
        kinds = sorted(list_kinds(), key=lambda kind: self._begun.get(kind.name, 0.0))
        return [self._begin(kind, now) for kind in kinds]

    def _begin(self, kind: WorkKind, now: datetime) -> int | None:
        """Start the due work of a kind; return the number of due ids, None if it is unknown."""
        try:
            due = list(dict.fromkeys(kind.due(now)))
        except Exception:
            # The loop must not end if the database is down for a while.
            log.exception("Looking for due work failed; looking again in %s s.", self.every)
            return None
        busy = self._busy.copy()
        waiting = [pk for pk in due if (kind.name, pk) not in busy]
        if kind.at_once is not None:
            of_kind = sum(name == kind.name for name, _ in busy)
            free = kind.at_once - of_kind
            if kind.is_job:
                free = min(free, MAX_JOBS - sum(busy.values()))
            self._left_over |= len(waiting) > max(0, free)
            waiting = waiting[: max(0, free)]
        if waiting and kind.is_job:
            self._begun[kind.name] = time.monotonic()
        for pk in waiting:
            self._busy[kind.name, pk] = kind.is_job
            self._slices.submit(self._work, kind, pk)
        return len(due)

    def _work(self, kind: WorkKind, pk: int) -> None:
        begun, well = time.monotonic(), False
        try:
            kind.work(pk)
            well = True
            self.life.ended(well=True)
        except Exception:
            self.life.ended(well=False)
            log.exception("Working on %s %s failed; trying again.", kind.name, pk)
        finally:
            connections.close_all()
            self._busy.pop((kind.name, pk), None)
            # If the slice ended because its time was over, or if jobs wait for their turn, work is
            # left. Without another look now, the evaluator or the worker would be idle.
            if time.monotonic() - begun > self.every or (well and self._left_over):
                self._again.set()


class WorkLoopStep(bootsteps.StartStopStep):
    """Start the work loop once the Celery worker has a pool, and stop it before the pool waits for
    its tasks."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self.loop = WorkLoop()

    def start(self, parent: Any) -> None:
        os.nice(NICENESS)
        self.loop.start()

    def stop(self, parent: Any) -> None:
        self.loop.stop()

    def terminate(self, parent: Any) -> None:
        self.loop.stop()
