"""All long-running work of a project in one list: jobs of every kind, and runs.

A job kind defines how a worker runs its jobs, who sees the jobs, which page they belong to, and
which actions are possible. The state is stored in the job itself. Jobs of a kind that is not listed
here, as in a backup of another version, are not run by any worker; leads see them and can cancel
them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q, QuerySet, Value
from django.utils import timezone

from annotation.db import transactions
from annotation.generation import perturber_jobs
from annotation.importing import jobs as imports
from annotation.importing import upload_files as uploads
from annotation.items.snapshots import create
from annotation.jobs import job_queue
from annotation.models import Event, Job, Membership
from annotation.settings import project_settings
from judging.archive import jobs as archives
from judging.exporting import jobs
from judging.generation import bring_in
from judging.models import Run
from judging.runs import counts

# The event's name in the audit log.
RERUN_EVENT = "job again"
ACTIVE_STATES = (Run.State.PLANNING, Run.State.RUNNING, Run.State.PAUSED)
JOB, RUN = "job", "run"


def _import_state(job: Job) -> str:
    """The state to show for an import: it may wait for a user's choice instead of a worker."""
    asks = job.state == Job.State.WAITING and job.result["step"] in (uploads.CHOOSE, uploads.READY)
    return "waiting for your choice" if asks else job.state


def _import_is_there(job: Job) -> bool:
    return not job.result["deleted"] and job.result["step"] == uploads.STORE


@dataclass(frozen=True)
class JobKind:
    """How jobs of one kind are run and shown.

    `run` runs the job with this id until `stopped` returns true, unless another worker is running
    it. `due` returns the ids of the jobs to run, by default all jobs that no worker is running.
    `page` is the name of the page where jobs are requested. If `numbered`, the page's URL takes a
    number. `place` returns this number, which is the job's own number or another number from its
    result.
    """

    title: str
    run: Callable[..., object] | None = None
    due: Callable[[datetime], list[int]] | None = None
    page: str = ""
    numbered: bool = False
    place: Callable[[Job], int | None] = lambda job: job.result.get("number")
    of: Callable[[Job], str] = lambda job: ""
    state: Callable[[Job], str] = lambda job: job.state
    sees: Callable[[Membership], Q] = lambda member: Q() if member.is_lead else Q(pk__in=[])
    cancel: Callable[[Job, Membership], bool] | None = job_queue.cancel_job
    can_again: Callable[[Job], bool] = lambda job: True
    # Only called when somebody wants to run the job again, since it may need a query.
    may_again: Callable[[Job, Membership], bool] = lambda job, member: True


JOB_KINDS: dict[str, JobKind] = {
    # This job only applies the settings, and ends soon.
    project_settings.RESIZE_JOB: JobKind(
        "Labels needed per item", project_settings.run_job, page="settings", cancel=None
    ),
    imports.JOB_KIND: JobKind(
        "Import",
        imports.run_job,
        imports.due_job_ids,
        page="import",
        numbered=True,
        of=lambda job: str(job.result["name"]),
        state=_import_state,
        cancel=lambda job, member: imports.cancel_import(job, member, timezone.now()),
        can_again=_import_is_there,
    ),
    jobs.KIND: JobKind(
        "Export",
        jobs.run_job,
        jobs.due_job_ids,
        page="exports",
        of=lambda job: f"{job.result['table']}, {job.result['form']}",
        sees=lambda member: Q(result__table__in=jobs.list_tables(member)),
    ),
    archives.KIND: JobKind("Archive of results", archives.run_job, page="archives"),
    perturber_jobs.JOB_KIND: JobKind(
        "Generated items",
        perturber_jobs.run_job,
        page="generation",
        numbered=True,
        of=lambda job: f"by {job.result['by']}, seed {job.result['seed']}",
    ),
    bring_in.KIND: JobKind(
        "Import of generated items",
        bring_in.run_job,
        page="run-bring-in",
        numbered=True,
        place=lambda job: int(job.result["run"]),
        of=lambda job: f"run {job.result['run']}, into {job.result['into']}",
        may_again=bring_in.can_rerun,
    ),
    create.JOB_KIND: JobKind(
        "Snapshot",
        create.run_job,
        create.due_job_ids,
        page="snapshots",
        of=lambda job: str(job.result["name"]),
        # A failed snapshot is deleted entirely, so its name is free for a new one.
        can_again=lambda job: False,
    ),
}


@dataclass(frozen=True)
class JobListEntry:
    """One line of the list. `done` and `total` are None if there is nothing to count."""

    title: str
    state: str
    member: str
    created_at: datetime
    finished_at: datetime | None
    message: str
    page: str = ""
    number: int | None = None
    # The number in the page's URL, if it takes one.
    place: int | None = None
    of: str = ""
    done: int | None = None
    total: int | None = None
    kind: str = ""
    can_cancel: bool = False
    can_again: bool = False

    @property
    def is_under_way(self) -> bool:
        """True if the job or run is in progress or waits for a worker."""
        return self.state in {"waiting", "running", "planning"}


@dataclass(frozen=True)
class CombinedRows:
    """Rows of several tables in one order, with the queryset methods that pagination needs, since a
    union of querysets does not have these methods."""

    parts: tuple[QuerySet[Any, Any], ...]
    order: tuple[str, ...] = ("-created_at", "-pk")

    def filter(self, **where: Any) -> "CombinedRows":
        """Filter the rows of each table; every table must have these columns."""
        return replace(self, parts=tuple(part.filter(**where) for part in self.parts))

    def order_by(self, *order: str) -> "CombinedRows":
        """Return the same rows in this order instead of the earlier order."""
        return replace(self, order=order)

    def count(self) -> int:
        """Count the rows, with one query for each table."""
        return sum(part.count() for part in self.parts)

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def __getitem__(self, some: slice) -> QuerySet[Any, Any]:
        first, *others = self.parts
        every = first.union(*others, all=True) if others else first
        return every.order_by(*self.order)[some]


def list_visible(member: Membership) -> CombinedRows:
    """The jobs and runs that the member may see, newest first. Each row says if it is a job or a
    run, and has its id."""
    columns = ("what", "pk", "created_at")
    mine = Job.objects.filter(_visible_jobs(member), project=member.project).order_by()
    every = mine.annotate(what=Value(JOB, models.CharField())).values_list(*columns, named=True)
    if not member.can_see_results:
        return CombinedRows((every,))
    own = Run.objects.in_project(member.project).order_by()
    of_runs = own.annotate(what=Value(RUN, models.CharField())).values_list(*columns, named=True)
    return CombinedRows((every, of_runs))


def build_entries(rows: Sequence[tuple[Any, ...]], member: Membership) -> list[JobListEntry]:
    """Build the entries for some rows of the list, in the same order, with a fixed number of
    queries."""
    ids = {what: [pk for kind, pk, *_ in rows if kind == what] for what in (JOB, RUN)}
    found: dict[tuple[str, int], JobListEntry] = {}
    for job in Job.objects.filter(pk__in=ids[JOB]).select_related("member"):
        found[JOB, job.pk] = _build_job_entry(job, member)
    some = Run.objects.filter(pk__in=ids[RUN])
    failed = set(some.to_retry().values_list("pk", flat=True)) if ids[RUN] else set()
    for run in counts.with_item_counts(some.for_list(), timezone.now()) if ids[RUN] else []:
        found[RUN, run.pk] = _build_run_entry(run, member, failed=run.pk in failed)
    return [found[what, pk] for what, pk, *_ in rows if (what, pk) in found]


def find_job(member: Membership, kind: str, number: int) -> Job | None:
    """The job of this kind and number, if the member may see it."""
    mine = Job.objects.filter(_visible_jobs(member), project=member.project, kind=kind)
    return mine.filter(result__number=number).select_related("member").first()


def cancel_job(job: Job, member: Membership) -> bool:
    """Cancel an unfinished job; return True if it was cancelled."""
    end = _kind(job).cancel
    return end is not None and job.finished_at is None and end(job, member)


def rerun_job(job: Job, member: Membership) -> bool:
    """Let the next worker run a failed or cancelled job again from the start; return False if that
    is not possible. What the job has already stored stays unchanged."""
    if not _can_rerun(job) or not _kind(job).may_again(job, member):
        return False
    anew = {name: value for name, value in job.result.items() if name != "until"}
    values = {"state": Job.State.WAITING, "finished_at": None, "message": "", "done": 0}
    with transactions.transact():
        ended = Job.objects.filter(pk=job.pk, state__in=Job.CAME_TO_NOTHING)
        if not ended.update(result=anew, **values):
            return False
        whose = {"project_id": job.project_id, "member_id": member.pk}
        Event.record(RERUN_EVENT, f"{job.kind} {job.result.get('number', '')}".strip(), **whose)
    return True


def _visible_jobs(member: Membership) -> Q:
    seen = Q(pk__in=[])
    for name, kind in JOB_KINDS.items():
        seen |= Q(kind=name) & kind.sees(member)
    return seen | ~Q(kind__in=JOB_KINDS) if member.is_lead else seen


def _kind(job: Job) -> JobKind:
    return JOB_KINDS.get(job.kind) or JobKind(job.kind.replace("-", " ").capitalize())


def _can_rerun(job: Job) -> bool:
    return job.came_to_nothing and _kind(job).can_again(job)


def _build_job_entry(job: Job, member: Membership) -> JobListEntry:
    kind, number = _kind(job), job.result.get("number")
    return JobListEntry(
        title=kind.title,
        state=kind.state(job),
        member=job.member.alias if job.member else "",
        created_at=job.created_at,
        finished_at=job.finished_at,
        message=job.message,
        page=kind.page,
        number=number,
        place=kind.place(job) if kind.numbered else None,
        of=kind.of(job),
        # Without counts there is no progress to show.
        done=job.done if job.done or job.total else None,
        total=job.total,
        kind=job.kind,
        can_cancel=number is not None and kind.cancel is not None and job.finished_at is None,
        can_again=number is not None and _can_rerun(job),
    )


def _build_run_entry(run: Run, member: Membership, *, failed: bool) -> JobListEntry:
    items = run.counted
    return JobListEntry(
        title="Run",
        state=run.state,
        member=run.member.alias if run.member else "",
        created_at=run.created_at,
        finished_at=None if run.state in ACTIVE_STATES else run.finished_at or run.created_at,
        message=run.reason,
        page="run",
        number=run.number,
        place=run.number,
        of=f"{run.strategy_name} at {run.endpoint.name}",
        done=items.items - items.pending,
        total=items.items,
        kind=RUN,
        can_cancel=member.can_run and run.state in ACTIVE_STATES,
        can_again=member.can_run and failed,
    )
