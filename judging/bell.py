"""Every worker looks for due work by itself, so that losing every message loses nothing."""

import logging
import threading
from typing import Any

from celery import bootsteps
from django.db import close_old_connections, connections
from django.utils import timezone

from judging import asking, leasing, tasks

log = logging.getLogger(__name__)

# Seconds between two looks. Each is one indexed query.
EVERY = 2.0


class Bell:
    """A thread that rings for what is due, and on stopping asks running slices to end."""

    def __init__(self, every: float = EVERY) -> None:
        self.every = every
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, name="bell", daemon=True)

    def start(self) -> None:
        asking.STOP.clear()
        self._thread.start()

    def stop(self) -> None:
        asking.STOP.set()
        self._stopped.set()
        self._thread.join(timeout=self.every)

    def _look(self) -> None:
        while not self._stopped.wait(self.every):
            try:
                ring_for_due(expires=3 * self.every)
            except Exception:
                # Neither a database nor a broker that is away for a while may end the looking.
                log.exception("Looking for due work failed; looking again in %s s.", self.every)
            close_old_connections()
        connections.close_all()


def ring_for_due(*, expires: float) -> int:
    """Send one message for each endpoint that is due; how many there were.

    A message that no worker takes within `expires` seconds is dropped: while all of them are
    busy, messages of later looks would pile up behind it.
    """
    due = leasing.due_endpoints(timezone.now())
    for endpoint_id in due:
        tasks.work.apply_async((endpoint_id,), expires=expires)
    return len(due)


class BellStep(bootsteps.StartStopStep):
    """Starts the bell once the worker has a pool, and stops it before the pool waits for tasks."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self.bell = Bell()

    def start(self, parent: Any) -> None:
        self.bell.start()

    def stop(self, parent: Any) -> None:
        self.bell.stop()

    def terminate(self, parent: Any) -> None:
        self.bell.stop()
