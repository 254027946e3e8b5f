"""Items made here that are asked for in the browser or the API: a job each, done by a worker in a
program of its own.

There is one kind of job, whatever makes the items; `by` in its result says what does.
"""

from collections.abc import Callable
from datetime import datetime
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
    """Have perturbers make items by the next worker. Raises as `perturbers.check_request` does, and
    `FieldError` for a share that is none."""
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
    """The times that items were made, the last first."""
    return job_queue.list_jobs(project, JOB_KIND)


def find_job(project: Project, number: int) -> Job | None:
    return list_jobs(project).filter(result__number=number).first()


def due_job_ids(now: datetime) -> list[int]:
    """The ids of jobs that wait for a worker, or whose worker is gone."""
    return job_queue.due_job_ids(JOB_KIND, now)


def run_job(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Make what a job asks for, unless another worker is at it; whether that was done. One that is
    `stopped` waits for the next worker: what was stored is then found unchanged."""
    return job_queue.run_job_command(job_id, JOB_KIND, "perturb", "made", stopped)


def make_job_items(job: Job) -> PerturbResult:
    """What the program does: make what the job asks for, and note how far it is."""
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
        job.project, wish, ReleasePolicy.of(said), member=job.member, told=told
    )


def summarise_result(done: PerturbResult) -> dict[str, Any]:
    """What became of it, in numbers, and the first of the rows that did not come in."""
    return {
        "made": dict(done.made),
        "lacking": dict(done.lacking),
        "flagged": dict(done.flagged),
        **done.brought.told(),
    }
