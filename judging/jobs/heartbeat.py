"""Heartbeats of workers. Each worker updates its own row whenever it looks for work.

So a page can show immediately that no worker is running, even if no work was due lately.
"""

import os
import secrets
import socket
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

from django.db.models import Q

from annotation.db import transactions
from judging.models import Dispatcher, Worker

# A worker without a heartbeat for this long is dead; it looks for work every two seconds.
ALIVE_FOR = timedelta(seconds=8)
# Rows of killed workers are deleted after this time.
FORGET_AFTER = timedelta(days=1)


@dataclass
class WorkerStatus:
    """The status of a worker: `looked` is True if its last look for due work succeeded, `idle` if
    no work was due; the counters count slices that succeeded or failed."""

    name: str = field(default_factory=lambda: secrets.token_hex(8))
    looked: bool = False
    idle: bool = False
    slices: int = 0
    failures: int = 0
    told: int = 0
    lock: Lock = field(default_factory=Lock)

    def ended(self, *, well: bool) -> None:
        """Count a finished slice; any thread may call this."""
        with self.lock:
            self.slices += well
            self.failures += not well


def record(life: WorkerStatus, now: datetime) -> None:
    """Record a worker's heartbeat, and its progress since the last heartbeat."""
    worked = life.slices
    values = {"alive_until": now + ALIVE_FOR, "slices": worked, "failures": life.failures}
    values |= {"looked_at": now} if life.looked else {}
    values |= {"progressed_at": now} if worked > life.told or life.idle else {}
    with transactions.transact():
        if not Worker.objects.filter(name=life.name).update(**values):
            host = socket.gethostname()[:200]
            Worker.objects.create(
                name=life.name, host=host, process=os.getpid(), started_at=now, **values
            )
            Worker.objects.filter(alive_until__lt=now - FORGET_AFTER).delete()
    life.told = worked


def record_stop(life: WorkerStatus) -> None:
    """Delete the row of a worker that stops."""
    with transactions.transact():
        Worker.objects.filter(name=life.name).delete()


def has_worker(endpoint_id: int, now: datetime) -> bool:
    """True if a worker is alive, or if another process, such as a command that waits for its run,
    works on this endpoint."""
    at_it = Q(name__in=[f"endpoint {endpoint_id}", f"planning {endpoint_id}"])
    alive = Worker.objects.alive(now)
    return alive.exists() or Dispatcher.objects.filter(at_it, held_until__gt=now).exists()
