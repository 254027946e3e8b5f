"""A Celery worker in a thread of the server process, for the default setup without a separate
worker."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from celery import Celery, current_app

# Slices of this many endpoints run in parallel.
CONCURRENCY = 4
STOP_TIMEOUT = 10.0


@contextmanager
def running_worker(app: Celery | None = None) -> Iterator[None]:
    """Run a worker while the `with` block runs. The worker exits once its running slices have
    ended."""
    ready = threading.Event()
    controller = (app or current_app).WorkController(
        pool="threads",
        concurrency=CONCURRENCY,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        ready_callback=lambda consumer: ready.set(),
    )
    thread = threading.Thread(target=controller.start, name="embedded-worker", daemon=True)
    thread.start()
    if not ready.wait(STOP_TIMEOUT):
        raise RuntimeError("The embedded worker did not start.")
    try:
        yield
    finally:
        controller.stop()
        thread.join(STOP_TIMEOUT)
