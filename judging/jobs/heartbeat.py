"""Which workers are alive and get on: each says so in a row of its own whenever it looks for work.

So a page can say at once that nobody works, also where nothing was due lately.
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

# A worker that says nothing for so long is dead; it looks for work every two seconds.
ALIVE_FOR = timedelta(seconds=8)
# Rows of workers that were killed are kept no longer.
FORGET_AFTER = timedelta(days=1)


@dataclass
class WorkerStatus:
    """What a worker says of itself: whether it could find out all that is due, whether nothing
    was, and how many slices ended well or failed."""

    name: str = field(default_factory=lambda: secrets.token_hex(8))
    looked: bool = False
    idle: bool = False
    slices: int = 0
    failures: int = 0
    told: int = 0
    lock: Lock = field(default_factory=Lock)

    def ended(self, *, well: bool) -> None:
        """Count a slice that ended, in whichever thread."""
        with self.lock:
            self.slices += well
            self.failures += not well


def record(life: WorkerStatus, now: datetime) -> None:
    """Say that a worker is alive, and how it got on since it last said so."""
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
    """Say that a worker stops."""
    with transactions.transact():
        Worker.objects.filter(name=life.name).delete()


def has_worker(endpoint_id: int, now: datetime) -> bool:
    """Whether a worker is alive, or somebody is at this endpoint without being one, such as a
    command that waits for its run."""
    at_it = Q(name__in=[f"endpoint {endpoint_id}", f"planning {endpoint_id}"])
    alive = Worker.objects.alive(now)
    return alive.exists() or Dispatcher.objects.filter(at_it, held_until__gt=now).exists()
