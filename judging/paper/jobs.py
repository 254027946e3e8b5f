"""Archives that are asked for in the browser: a job each, done by a worker in a program of its own.

A worker that froze results itself would hold up all else that runs in its process; and what a
program that is ended leaves behind is a file that nobody offers.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from annotation import programs, writing
from annotation.models import Job, Membership, Project
from annotation.settings import free
from judging import clock

KIND = "freeze-results"
# A worker that was killed is noticed after this long.
LEASE = timedelta(seconds=60)


@dataclass(frozen=True)
class Wish:
    """What is to be frozen: runs by their numbers, with texts and replies or without."""

    runs: Sequence[int]
    texts: bool = False
    replies: bool = False


def want(project: Project, member: Membership, wish: Wish) -> Job:
    """Have an archive made by the next worker; its number is one of the project's archives."""
    with writing.transact():
        Project.objects.select_for_update(no_key=True, of=("self",)).get(pk=project.pk)
        number = of_project(project).count() + 1
        asked = {"runs": [*wish.runs], "texts": wish.texts, "replies": wish.replies}
        return Job.objects.create(
            project=project, kind=KIND, member=member, result={"number": number, **asked}
        )


def of_project(project: Project) -> QuerySet[Job]:
    """The archives that were asked for, the last first."""
    return Job.objects.filter(project=project, kind=KIND).select_related("project", "member")


def path(job: Job) -> Path:
    """Where the file of a job is, once it is finished; nothing that a person wrote names it."""
    return settings.VAR_DIR / "archives" / f"results-{job.pk}.zip"


def due(now: datetime) -> list[int]:
    """The ids of archives that wait for a worker, or whose worker is gone."""
    return list(Job.objects.filter(free(now), kind=KIND).values_list("pk", flat=True))


def work(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Make an archive, unless another worker is at it; whether it was made.

    One that is `stopped` waits for the next worker, which begins anew.
    """
    job = _take(job_id)
    if job is None:
        return False
    path(job).parent.mkdir(parents=True, exist_ok=True)
    ended = programs.run(
        _command(job), stopped=stopped, hold=lambda: _hold(job), every=LEASE.total_seconds() / 3
    )
    _leave(job, ended)
    return ended.code == 0


def _leave(job: Job, ended: programs.Ended) -> None:
    """Note how the program ended; one that was stopped is left to the next worker."""
    if ended.code is None:
        _save(job, state=Job.State.WAITING)
    elif ended.code:
        _save(job, state=Job.State.FAILED, message=ended.said, finished_at=clock.now())
    else:
        job.result["bytes"] = path(job).stat().st_size
        _save(job, state=Job.State.FINISHED, finished_at=clock.now())


def _take(job_id: int) -> Job | None:
    now = clock.now()
    with writing.transact():
        found = Job.objects.select_for_update(of=("self",)).filter(free(now), kind=KIND)
        job = found.select_related("project").filter(pk=job_id).first()
        if job:
            _hold(job)
    return job


def _hold(job: Job) -> None:
    job.result["until"] = (clock.now() + LEASE).timestamp()
    _save(job, state=Job.State.RUNNING)


def _command(job: Job) -> list[str]:
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "freeze_results", "-v", "0"]
    command += ["--project", job.project.slug, "--output", str(path(job))]
    command += ["--run", *map(str, job.result["runs"])] if job.result["runs"] else []
    command += ["--with-texts"] if job.result["texts"] else []
    return command + (["--with-replies"] if job.result["replies"] else [])


def _save(job: Job, **values: Any) -> None:
    for name, value in values.items():
        setattr(job, name, value)
    with writing.transact():
        job.save(update_fields=["result", *values])
