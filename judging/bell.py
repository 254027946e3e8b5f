"""Every worker looks for due work by itself, so that losing every message loses nothing."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from celery import bootsteps
from django.db import close_old_connections, connections
from django.utils import timezone

from judging import asking, leasing

log = logging.getLogger(__name__)

# Seconds between two looks. Each is one indexed query.
EVERY = 2.0
# Slices of so many endpoints run side by side.
SLICES = 4


class Bell:
    """A thread that looks for what is due and has it worked on, whether a broker is there or not.

    An endpoint that another worker is at is left to it by `asking.work`. Stopping asks running
    slices to end, also those that messages started, and waits for its own.
    """

    def __init__(self, every: float = EVERY) -> None:
        self.every = every
        self._busy: set[int] = set()
        self._stopped = threading.Event()
        self._slices = ThreadPoolExecutor(SLICES, thread_name_prefix="bell-slice")
        self._thread = threading.Thread(target=self._look, name="bell", daemon=True)

    def start(self) -> None:
        asking.STOP.clear()
        self._thread.start()

    def stop(self) -> None:
        asking.STOP.set()
        self._stopped.set()
        self._thread.join()
        self._slices.shutdown(cancel_futures=True)

    def _look(self) -> None:
        while not self._stopped.wait(self.every):
            try:
                due = leasing.due_endpoints(timezone.now())
            except Exception:
                # A database that is away for a while may not end the looking.
                log.exception("Looking for due work failed; looking again in %s s.", self.every)
                due = []
            for endpoint_id in set(due) - self._busy:
                self._busy.add(endpoint_id)
                self._slices.submit(self._work, endpoint_id)
            close_old_connections()
        connections.close_all()

    def _work(self, endpoint_id: int) -> None:
        try:
            asking.work(endpoint_id)
        except Exception:
            log.exception("Asking endpoint %s failed; trying again.", endpoint_id)
        finally:
            connections.close_all()
            self._busy.discard(endpoint_id)


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
