"""Celery tasks for changes that take too long for a request; the row of the job records the
progress."""

from celery import shared_task
from kombu.exceptions import OperationalError

from annotation.settings import project_settings


@shared_task(name="annotation.places", ignore_result=True)
def bring_in_line(job_id: int) -> None:
    """Add or close slots of all items of a project as its settings require.

    The task runs for a limited time; the next worker finds the remaining work by itself.
    """
    project_settings.run_job(job_id)


def send_resize(job_id: int) -> None:
    """Ask a worker to run the job now; if the broker is down, workers find the job by
    themselves."""
    try:
        bring_in_line.delay(job_id)
    except OperationalError:
        return
