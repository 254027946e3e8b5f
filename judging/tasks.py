"""The bell: messages only say where work may lie, the rows say what it is (design 3.7)."""

import logging
from typing import Any

from celery import shared_task
from kombu.exceptions import OperationalError

from judging.results import figures
from judging.runs.engine import ask

log = logging.getLogger(__name__)


@shared_task(name="judging.work", ignore_result=True)
def ask_endpoint(endpoint_id: int) -> None:
    """Ask an endpoint for a slice of time."""
    ask.run_overlapping_slice(endpoint_id)


@shared_task(name="judging.figure", ignore_result=True)
def make_figure(figure_id: int) -> None:
    """Make a table of figures that is waited for."""
    figures.run_job(figure_id)


def notify_workers(endpoint_id: int) -> None:
    """Tell the workers that an endpoint has work. A broker that is down is no harm: every worker
    also looks by itself."""
    _send(ask_endpoint, endpoint_id)


def notify_of_figure(asked: figures.FigureTable | figures.PendingTable) -> None:
    """Tell the workers of figures that are still to be made, if they are."""
    if isinstance(asked, figures.PendingTable) and not asked.step:
        _send(make_figure, asked.figure)


def _send(task: Any, pk: int) -> None:
    try:
        task.delay(pk)
    except OperationalError as error:
        log.warning(
            "The broker did not take a message (%s); workers will look by themselves.", error
        )
