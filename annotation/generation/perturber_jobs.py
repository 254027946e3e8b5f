"""Jobs that generate items by perturbers. They are started on a page or by the API, and a worker
runs each job in a subprocess.

All ways to generate items share one kind of job; `by` in the result names the way.
"""

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet

from annotation.generation import perturbers
from annotation.generation.perturbers import PerturbRequest, PerturbResult
from annotation.generation.release import RELEASE_ALL, ReleasePolicy
from annotation.jobs import job_queue, subprocesses
from annotation.models import Job, Membership, Project

JOB_KIND = "generation"
BY_PERTURBERS = "perturbers"


def enqueue(
    project: Project,
    wish: PerturbRequest,
    vetting: ReleasePolicy = RELEASE_ALL,
    member: Membership | None = None,
) -> Job:
    """Have the next worker generate items. Raises the errors of `perturbers.check_request`, and
    `FieldError` for an invalid share."""
    perturbers.check_request(project, wish)
    vetting.check()
    return job_queue.enqueue(
        project,
        member,
        JOB_KIND,
        by=BY_PERTURBERS,
        perturbers=[*wish.perturbers],
        seed=wish.seed,
        each=wish.number,
        errors=[*wish.doses],
        limit=wish.limit,
        purpose=wish.purpose,
        **vetting.facts(),
    )


def list_jobs(project: Project) -> QuerySet[Job]:
    """Return the project's generation jobs, the latest first."""
    return job_queue.list_jobs(project, JOB_KIND)


def find_job(project: Project, number: int) -> Job | None:
    """Return the project's generation job with this number; None if there is none."""
    return list_jobs(project).filter(result__number=number).first()


def run_job(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Generate the items of a job, unless another worker runs the job. Return True on success. A
    stopped job waits for the next worker, which finds the stored items unchanged."""
    return job_queue.run_job_command(job_id, JOB_KIND, "perturb", "made", stopped)


def make_job_items(job: Job) -> PerturbResult:
    """Generate the items of a job and store the progress. This is run in the subprocess."""
    said = job.result
    wish = PerturbRequest(
        perturbers=tuple(said["perturbers"]),
        seed=said["seed"],
        number=said["each"],
        doses=tuple(said["errors"]),
        limit=said["limit"],
        purpose=said["purpose"],
    )

    def told(done: int, total: int) -> None:
        job_queue.store_values(job, done=done, total=total)
        subprocesses.send_heartbeat()

    return perturbers.make_items(
        job.project, wish, ReleasePolicy.from_values(said), member=job.member, told=told
    )


def summarise_result(done: PerturbResult) -> dict[str, Any]:
    """Return the counts of the result as a dict, with the first problems of rejected rows."""
    return {
        "made": dict(done.made),
        "lacking": dict(done.lacking),
        "flagged": dict(done.flagged),
        **done.brought.summary(),
    }
