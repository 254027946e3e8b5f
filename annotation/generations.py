"""Items made here that are asked for in the browser or the API: a job each, done by a worker in a
program of its own.

There is one kind of job, whatever makes the items; `by` in its result says what does.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from annotation import jobs, perturbing, programs
from annotation.models import Job, Membership, Project
from annotation.perturbing import Tally, Wish
from annotation.vetting import EVERYBODY, Vetting

KIND = "generation"
PERTURBERS = "perturbers"


def want(
    project: Project, wish: Wish, vetting: Vetting = EVERYBODY, member: Membership | None = None
) -> Job:
    """Have perturbers make items by the next worker. Raises as `perturbing.check` does, and
    `FieldError` for a share that is none."""
    perturbing.check(project, wish)
    vetting.check()
    return jobs.want(
        project,
        member,
        KIND,
        by=PERTURBERS,
        perturbers=[*wish.perturbers],
        seed=wish.seed,
        each=wish.number,
        errors=[*wish.doses],
        limit=wish.limit,
        purpose=wish.purpose,
        **vetting.facts(),
    )


def of_project(project: Project) -> QuerySet[Job]:
    """The times that items were made, the last first."""
    return jobs.of_project(project, KIND)


def called(project: Project, number: int) -> Job | None:
    return of_project(project).filter(result__number=number).first()


def due(now: datetime) -> list[int]:
    """The ids of jobs that wait for a worker, or whose worker is gone."""
    return jobs.due(KIND, now)


def work(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Make what a job asks for, unless another worker is at it; whether that was done. One that is
    `stopped` waits for the next worker: what was stored is then found unchanged."""
    return jobs.by_command(job_id, KIND, "perturb", "made", stopped)


def make(job: Job) -> Tally:
    """What the program does: make what the job asks for, and note how far it is."""
    said = job.result
    wish = Wish(
        perturbers=tuple(said["perturbers"]),
        seed=said["seed"],
        number=said["each"],
        doses=tuple(said["errors"]),
        limit=said["limit"],
        purpose=said["purpose"],
    )

    def told(done: int, total: int) -> None:
        jobs.note(job, done=done, total=total)
        programs.alive()

    return perturbing.make(job.project, wish, Vetting.of(said), member=job.member, told=told)


def outcome(done: Tally) -> dict[str, Any]:
    """What became of it, in numbers, and the first of the rows that did not come in."""
    return {
        "made": dict(done.made),
        "lacking": dict(done.lacking),
        "flagged": dict(done.flagged),
        **done.brought.told(),
    }
