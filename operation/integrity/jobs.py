"""Checks of jobs, and of the archives of results that they made."""

from collections.abc import Iterator

from annotation.db import clock
from annotation.jobs.job_queue import MAX_LEASE_TIME
from annotation.models import Job
from formats.rows import FormatError
from formats.sealed import open_sealed
from judging.archive import jobs as archive_jobs
from judging.archive.load import LIMITS
from operation.integrity.checks import Breach, Check, build_sql_check


def find_long_leases() -> Iterator[Breach]:
    """Yield the running jobs whose lease ends later than any lease that a correct clock sets."""
    latest = (clock.now() + MAX_LEASE_TIME).timestamp()
    for job in Job.objects.filter(state=Job.State.RUNNING).select_related("project"):
        until = job.result.get("until")
        if until is not None and until > latest:
            yield {"project": job.project.slug, "job": f"{job.kind} {job.pk}", "until": until}


def find_changed_archives() -> Iterator[Breach]:
    """Yield the archives of results whose file is missing or does not have the digests of its
    manifest."""
    made = Job.objects.filter(kind=archive_jobs.KIND, state=Job.State.FINISHED)
    for job in made.select_related("project").order_by("pk"):
        path, problem = archive_jobs.get_path(job), ""
        try:
            if path.exists():
                with open_sealed(path, LIMITS):
                    pass
            else:
                problem = "the file is missing"
        except (FormatError, OSError) as error:
            problem = str(error)
        if problem:
            number = job.result.get("number")
            yield {"project": job.project.slug, "archive": number, "problem": problem}


CHECKS = (
    build_sql_check(
        "job-ends",
        "A job has an end if and only if it is finished, failed or cancelled.",
        "A worker would run the job again, or nobody would ever run it.",
        """
        SELECT p.slug AS project, j.kind, j.state, j.id AS job
        FROM annotation_job j JOIN annotation_project p ON p.id = j.project_id
        WHERE (j.finished_at IS NULL) <> (j.state IN ('waiting', 'running'))
        """,
    ),
    Check(
        "job-leases",
        "The lease of a running job ends soon, unless its worker extends it.",
        "A clock was ahead when the lease was set. Another worker takes the job over at once; "
        "synchronise the clocks with NTP.",
        find_long_leases,
    ),
    Check(
        "archives",
        "Every archive of results is there and has the digests of its manifest.",
        "The file was changed or deleted. Make the archive again.",
        find_changed_archives,
    ),
)
