"""Jobs that workers take under a lease. If a job runs in a subprocess, its lease is extended until
the subprocess ends, and then the outcome is stored.

Jobs of a kind are numbered within their project.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from annotation.db import clock, sql, transactions
from annotation.jobs import subprocesses
from annotation.models import Event, Job, Membership, Project

# The job of a killed worker is free again after this time.
LEASE_TIME = timedelta(seconds=60)
# No lease ends later than this from now, if it was set by a correct clock.
MAX_LEASE_TIME = 2 * LEASE_TIME
_UNFINISHED = sql.PreparedRows(
    lambda kind: Job.objects.filter(kind=kind, finished_at=None).values_list("pk")
)


def enqueue(project: Project, member: Membership | None, kind: str, **asked: Any) -> Job:
    """Create a job for the next worker, with the next number in the project and `asked` as its
    result; works inside and outside a transaction."""
    with transactions.transact():
        Project.objects.select_for_update(no_key=True, of=("self",)).get(pk=project.pk)
        number = list_jobs(project, kind).count() + 1
        result = {"number": number, **asked}
        return Job.objects.create(project=project, kind=kind, member=member, result=result)


def list_jobs(project: Project, kind: str) -> QuerySet[Job]:
    """The project's jobs of a kind, the latest first."""
    return Job.objects.filter(project=project, kind=kind).select_related("project", "member")


def free_jobs_filter(now: datetime) -> Q:
    """Build a filter for unfinished jobs that no worker has leased. In a leased job, `result` has
    the end of the lease as `until`; a lease that ends too late was set by a wrong clock."""
    gone = Q(result__until__isnull=True) | Q(result__until__lte=now.timestamp())
    gone |= Q(result__until__gt=(now + MAX_LEASE_TIME).timestamp())
    return Q(finished_at=None) & (Q(state=Job.State.WAITING) | (Q(state=Job.State.RUNNING) & gone))


def due_job_ids(kind: str, now: datetime) -> list[int]:
    """The ids of jobs that wait for a worker or whose worker is gone; projects take turns."""
    # A worker asks this every two seconds for each kind, and nearly always there is no job.
    if not _UNFINISHED.fetch(kind=kind):
        return []
    return in_turn(Job.objects.filter(free_jobs_filter(now), kind=kind), kind, now)


def in_turn(free: QuerySet[Job], kind: str, now: datetime) -> list[int]:
    """The ids of free jobs of a kind, the oldest first. Projects take turns, so that a project with
    hundreds of jobs does not keep the others waiting; a job that is running counts as a turn."""
    found = list(free.order_by("pk").values_list("pk", "project"))
    if len(found) < 2:
        return [pk for pk, _ in found]
    leased = Job.objects.filter(kind=kind, state=Job.State.RUNNING, finished_at=None)
    turns = Counter(leased.exclude(free_jobs_filter(now)).values_list("project", flat=True))
    waiting: list[tuple[int, int]] = []
    for pk, project in found:
        waiting.append((turns[project], pk))
        turns[project] += 1
    return [pk for _, pk in sorted(waiting)]


def unfinished_job(job: Job) -> QuerySet[Job]:
    """A queryset of this one job; empty if the job has ended or was cancelled."""
    return Job.objects.filter(pk=job.pk, finished_at=None)


def _own_job(job: Job) -> QuerySet[Job]:
    """A queryset of this one job; empty if the job has ended, was cancelled, or was leased again:
    a worker that stood still for longer than its lease has lost it."""
    if "until" not in job.result:
        return unfinished_job(job)
    return unfinished_job(job).filter(result__until=job.result["until"])


def take_lease(job_id: int, kind: str, *, now: datetime | None = None, **asked: Any) -> Job | None:
    """Lease a job for `LEASE_TIME`; return None if the job is not free or does not match the filter
    lookups in `asked`."""
    now = now or clock.now()
    with transactions.transact():
        found = Job.objects.select_for_update(of=("self",)).filter(
            free_jobs_filter(now), kind=kind, **asked
        )
        job = found.select_related("project").filter(pk=job_id).first()
        if job:
            job.state, job.result["until"] = Job.State.RUNNING, _lease_end(now)
            job.save(update_fields=["state", "result"])
    return job


@contextmanager
def hold_lease(
    job_id: int, kind: str, stopped: Callable[[], bool] = bool, **asked: Any
) -> Iterator[Job | None]:
    """Context manager with the job from `take_lease`. If the database connection is lost inside,
    the job is released over a new connection, and the error is raised again."""
    job = take_lease(job_id, kind, **asked)
    try:
        yield job
    except Error:
        if job and not connection.is_usable():
            patience = LEASE_TIME.total_seconds()
            transactions.retry_with_new_connection(
                lambda: _release_lease(job), patience=patience, stopped=stopped
            )
        raise


def _release_lease(job: Job) -> None:
    """Release a job to the next worker if this worker still has the lease of the job."""
    _own_job(job).filter(state=Job.State.RUNNING).update(state=Job.State.WAITING)


def run_leased(
    job: Job,
    command: Sequence[str],
    stopped: Callable[[], bool],
    told: Callable[[str], object] = str,
) -> subprocesses.ProgramResult:
    """Run a program until it ends, `stopped` returns true, or the job is cancelled or leased by
    another worker. Meanwhile, extend the lease. `told` gets what the program prints, as in
    `subprocesses.run_program`."""
    return subprocesses.run_program(
        command,
        stopped=lambda: stopped() or not _own_job(job).exists(),
        hold=lambda: _extend_lease(job),
        every=LEASE_TIME.total_seconds() / 3,
        told=told,
    )


def manage_command(*words: str) -> list[str]:
    """The command line of a management command, without Django's checks: this process passed them,
    and they import every page, which takes longer than most commands."""
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), *words, "--skip-checks"]


def run_job_command(
    job_id: int, kind: str, command: str, came_of: str, stopped: Callable[[], bool]
) -> bool:
    """Run a job with a management command that gets its id as `--job`, unless another worker has
    the lease; return True if the job succeeded. The last line that the command prints is JSON,
    which is stored in the job's result as `came_of`."""
    with hold_lease(job_id, kind, stopped) as job:
        if job is None:
            return False
        ended = run_leased(job, manage_command(command, "--job", str(job.pk)), stopped)
        told = {came_of: json.loads(ended.printed)} if ended.code == 0 else {}
        return store_outcome(job, ended, **told) and ended.code == 0


def store_outcome(job: Job, ended: subprocesses.ProgramResult, **result: Any) -> bool:
    """Store how the program ended, like `end_job`, and add `result` to the result of the job."""
    made = {"state": Job.State.FINISHED, "finished_at": timezone.now()}
    return end_job(job, ended, {**made, "result": {**job.result, **result}})


def end_job(job: Job, ended: subprocesses.ProgramResult, made: dict[str, Any]) -> bool:
    """Store how the program of the job ended: after a success the values `made`, otherwise the
    failure. A stopped job waits for the next worker. Returns False, and stores nothing, if the job
    has ended, was cancelled, or is another worker's by now."""
    values: dict[str, Any] = {"state": Job.State.WAITING}
    if ended.code == 0:
        values = made
    elif ended.code:
        values = {"state": Job.State.FAILED, "message": ended.said, "finished_at": timezone.now()}
    with transactions.transact():
        return bool(_own_job(job).update(**values))


def store_values(job: Job, **values: Any) -> None:
    """Store values of the job unless the job has ended or was cancelled."""
    with transactions.transact():
        unfinished_job(job).update(**values)


def cancel_job(job: Job, by: Membership) -> bool:
    """Cancel an unfinished job; return False if the job had ended already."""
    ended = {"state": Job.State.CANCELLED, "message": f"Cancelled by {by.alias}."}
    with transactions.transact():
        if not unfinished_job(job).update(finished_at=timezone.now(), **ended):
            return False
        called = f"{job.kind} {job.result.get('number', '')}".strip()
        Event.record("job cancelled", called, project_id=job.project_id, member_id=by.pk)
        return True


def _extend_lease(job: Job) -> None:
    prolonged = {**job.result, "until": _lease_end(clock.now())}
    with transactions.transact():
        if _own_job(job).filter(state=Job.State.RUNNING).update(result=prolonged):
            job.result = prolonged


def _lease_end(now: datetime) -> float:
    return (now + LEASE_TIME).timestamp()
