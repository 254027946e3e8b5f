"""Archives requested in the browser: each is a job that a worker runs in a separate process.

In the worker's own process, creating an archive would block all other work. If the separate process
is killed, its incomplete file is never offered for download.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db.models import QuerySet

from annotation.jobs import job_queue
from annotation.models import Job, Membership, Project

KIND = "freeze-results"


@dataclass(frozen=True)
class ArchiveRequest:
    """A requested archive: the numbers of the runs, with or without texts and replies."""

    runs: Sequence[int]
    texts: bool = False
    replies: bool = False


def enqueue(project: Project, member: Membership, wish: ArchiveRequest) -> Job:
    """Let the next free worker create an archive. The archive gets a number within the project."""
    asked = {"runs": [*wish.runs], "texts": wish.texts, "replies": wish.replies}
    return job_queue.enqueue(project, member, KIND, **asked)


def list_archives(project: Project) -> QuerySet[Job]:
    """The project's requested archives, the latest first."""
    return job_queue.list_jobs(project, KIND)


def get_path(job: Job) -> Path:
    """Return the path of a job's file once the job is finished. No part of the path comes from a
    user.
    """
    return settings.VAR_DIR / "archives" / f"results-{job.pk}.zip"


def run_job(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Create an archive unless another worker has the job; return True if it was created.

    A `stopped` job waits for the next worker, which starts it from the beginning.
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
