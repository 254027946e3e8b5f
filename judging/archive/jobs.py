"""Archives that are asked for in the browser: a job each, done by a worker in a program of its own.

A worker that froze results itself would hold up all else that runs in its process; and what a
program that is ended leaves behind is a file that nobody offers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db.models import QuerySet

from annotation.jobs import job_queue
from annotation.models import Job, Membership, Project

KIND = "freeze-results"


@dataclass(frozen=True)
class ArchiveRequest:
    """What is to be frozen: runs by their numbers, with texts and replies or without."""

    runs: Sequence[int]
    texts: bool = False
    replies: bool = False


def enqueue(project: Project, member: Membership, wish: ArchiveRequest) -> Job:
    """Have an archive made by the next worker; its number is one of the project's archives."""
    asked = {"runs": [*wish.runs], "texts": wish.texts, "replies": wish.replies}
    return job_queue.enqueue(project, member, KIND, **asked)


def list_archives(project: Project) -> QuerySet[Job]:
    """The archives that were asked for, the last first."""
    return job_queue.list_jobs(project, KIND)


def get_path(job: Job) -> Path:
    """Where the file of a job is, once it is finished; nothing that a person wrote names it."""
    return settings.VAR_DIR / "archives" / f"results-{job.pk}.zip"


def list_due(now: datetime) -> list[int]:
    """The ids of archives that wait for a worker, or whose worker is gone."""
    return job_queue.due_job_ids(KIND, now)


def run_job(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Make an archive, unless another worker is at it; whether it was made.

    One that is `stopped` waits for the next worker, which begins anew.
    """
    with job_queue.hold_lease(job_id, KIND, stopped) as job:
        if job is None:
            return False
        get_path(job).parent.mkdir(parents=True, exist_ok=True)
        ended = job_queue.run_leased(job, _build_command(job), stopped)
        size = {"bytes": get_path(job).stat().st_size} if ended.code == 0 else {}
        return job_queue.store_outcome(job, ended, **size) and ended.code == 0


def _build_command(job: Job) -> list[str]:
    command = job_queue.manage_command("freeze_results", "-v", "0")
    command += ["--project", job.project.slug, "--output", str(get_path(job))]
    command += [f"--member={job.member.alias}"] if job.member else []
    command += ["--run", *map(str, job.result["runs"])] if job.result["runs"] else []
    command += ["--with-texts"] if job.result["texts"] else []
    return command + (["--with-replies"] if job.result["replies"] else [])
