"""Celery tasks. A message only says where there may be work; the rows in the database say what to
do.
"""

import logging
import time
from typing import TYPE_CHECKING, Any

from celery import shared_task
from django.db import transaction
from kombu.exceptions import OperationalError

from annotation.db import clock
from judging.runs.engine import ask

if TYPE_CHECKING:
    from judging.results import figures

log = logging.getLogger(__name__)
# So long a broker that took no message is asked nothing: a page waits for each try.
QUIET_SECONDS = 10.0
_quiet_until = 0.0


@shared_task(name="judging.work", ignore_result=True)
def ask_endpoint(endpoint_id: int) -> None:
    """Send requests to an endpoint for a limited time."""
    ask.run_overlapping_slice(endpoint_id)


@shared_task(name="judging.figure", ignore_result=True)
def make_figure(figure_id: int) -> None:
    """Compute the table of figures whose turn it is: as a rule the one that was asked for, unless
    other projects wait."""
    # All tables, NumPy and SciPy with them: half the start of a command that only runs.
    from judging.results import figures

    # Another worker may have taken the first meanwhile.
    any(map(figures.run_job, figures.list_due(clock.now())))


def notify_workers(endpoint_id: int) -> None:
    """Tell the workers that an endpoint has work. It does no harm if the broker is down, since
    every worker also looks for work itself.
    """
    _send(ask_endpoint, endpoint_id)


def notify_of_figure(asked: "figures.FigureTable | figures.PendingTable") -> None:
    """Tell the workers to compute the figures, unless they are ready or in progress."""
    from judging.results import figures

    if isinstance(asked, figures.PendingTable) and not asked.step:
        _send(make_figure, asked.figure)


def _send(task: Any, pk: int) -> None:
    """Send a message once the work is committed, or at once outside a transaction."""
    transaction.on_commit(lambda: _deliver(task, pk))


def _deliver(task: Any, pk: int) -> None:
    global _quiet_until
    if time.monotonic() < _quiet_until:
        return
    try:
        task.delay(pk)
    except OperationalError as error:
        _quiet_until = time.monotonic() + QUIET_SECONDS
        log.warning(
            "The broker did not accept a message (%s); workers will find the work themselves.",
            error,
        )
