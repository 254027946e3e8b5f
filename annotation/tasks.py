"""What takes too long for a page, done by a worker; the job's row says how it stands."""

from celery import shared_task
from kombu.exceptions import OperationalError

from annotation.settings import project_settings


@shared_task(name="annotation.places", ignore_result=True)
def bring_in_line(job_id: int) -> None:
    """Give all items of a project as many places as its settings ask for.

    For a slice of time: what is left, every worker finds by itself.
    """
    project_settings.run_job(job_id)


def send_resize(job_id: int) -> None:
    """Have the job done at once. A broker that is down is no harm: workers look by themselves."""
    try:
        bring_in_line.delay(job_id)
    except OperationalError:
        return
