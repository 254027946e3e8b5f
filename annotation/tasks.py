"""What takes too long for a page, done by a worker; the job's row says how it stands."""

from celery import shared_task

from annotation import settings
from annotation.models import Job


@shared_task(name="annotation.places", ignore_result=True)
def bring_in_line(job_id: int) -> None:
    """Give all items of a project as many places as its settings ask for."""
    job = Job.objects.select_related("project__task_type").filter(pk=job_id).first()
    if job and job.finished_at is None:
        settings.bring_in_line(job)
