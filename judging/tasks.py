"""The bell: messages only say where work may lie, the rows say what it is (design 3.7)."""

import logging

from celery import shared_task
from kombu.exceptions import OperationalError

from judging.engine import asking

log = logging.getLogger(__name__)


@shared_task(name="judging.work", ignore_result=True)
def work(endpoint_id: int) -> None:
    """Ask an endpoint for a slice of time."""
    asking.work(endpoint_id)


def ring(endpoint_id: int) -> None:
    """Tell the workers that an endpoint has work. A broker that is down is no harm: every worker
    also looks by itself."""
    try:
        work.delay(endpoint_id)
    except OperationalError as error:
        log.warning(
            "The broker did not take a message (%s); workers will look by themselves.", error
        )
