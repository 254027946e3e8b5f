"""Which workers are alive: each says so in a row of its own whenever it looks for work.

So a page can say at once that nobody works, also where nothing was due lately.
"""

from datetime import datetime, timedelta

from django.db.models import Q

from annotation import writing
from judging.models import Dispatcher

# A worker that says nothing for so long is dead; it looks for work every two seconds.
ALIVE = timedelta(seconds=8)
# Rows of workers that were killed are kept no longer.
FORGOTTEN = timedelta(days=1)
_WORKER = "worker "


def beat(worker: str, now: datetime) -> None:
    """Say that a worker is alive."""
    with writing.transact():
        Dispatcher.objects.update_or_create(
            name=f"{_WORKER}{worker}", defaults={"held_until": now + ALIVE}
        )
        gone = Dispatcher.objects.filter(name__startswith=_WORKER, held_until__lt=now - FORGOTTEN)
        gone.delete()


def end(worker: str) -> None:
    """Say that a worker stops."""
    with writing.transact():
        Dispatcher.objects.filter(name=f"{_WORKER}{worker}").delete()


def works(endpoint_id: int, now: datetime) -> bool:
    """Whether a worker is alive, or somebody is at this endpoint without being one, such as a
    command that waits for its run."""
    at_it = Q(name__in=[f"endpoint {endpoint_id}", f"planning {endpoint_id}"])
    alive = Q(name__startswith=_WORKER)
    return Dispatcher.objects.filter(at_it | alive, held_until__gt=now).exists()
