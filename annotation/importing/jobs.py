"""Imports that are asked for in the browser or the API: a job each, done by a worker.

A file is looked at when it comes; once its columns are chosen it is checked, which stores nothing,
and then waits until somebody says that its items are to come in. What takes time is done by a
program of its own, so that a file that is hard to read holds up nothing else.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from annotation.db import transactions
from annotation.errors import Stale
from annotation.importing import program, upload_files
from annotation.jobs import job_queue
from annotation.jobs.subprocesses import ProgramResult
from annotation.models import Event, Job, Membership, Project

JOB_KIND = "import"
# Imports that wait until a person goes on with them, and so for no worker.
WAITS_FOR_PERSON = Q(kind=JOB_KIND, result__step__in=[upload_files.CHOOSE, upload_files.READY])
# So long the files of an import are kept; then they are deleted.
FILE_RETENTION = timedelta(days=7)
# A file that takes longer is given up.
MAX_DURATION = timedelta(hours=2)
# Files of so many bytes are checked while the person waits, about a second at most.
MAX_IMMEDIATE_BYTES = 1_000_000


def list_imports(project: Project) -> QuerySet[Job]:
    """The imports of a project, the last first."""
    return job_queue.list_jobs(project, JOB_KIND).select_related("member", "project__task_type")


def find_import(project: Project, number: int) -> Job | None:
    return list_imports(project).filter(result__number=number).first()


def describe_progress(project: Project) -> str:
    """How far the first of the imports is that workers are at or will take next; "" if there are
    none. One that waits for a person is not under way."""
    asked = list_imports(project).filter(finished_at=None)
    job = asked.filter(result__step__in=[upload_files.CHECK, upload_files.STORE]).last()
    if job is None:
        return ""
    if job.state == Job.State.WAITING:
        return "It is waiting for a worker and starts automatically."
    if job.result["step"] == upload_files.CHECK:
        return f"Its file is being checked: {job.done:,} rows so far."
    return f"{job.done:,} of {job.total:,} rows are read."


def create_import(member: Membership, told: dict[str, Any], now: datetime) -> Job:
    """A job for a file that was looked at; inside the transaction that moves it to its place."""
    expires = (now + FILE_RETENTION).timestamp()
    return job_queue.enqueue(
        member.project, member, JOB_KIND, **told, expires=expires, deleted=False
    )


def choose_columns(job: Job, columns: dict[str, str], *, accept: bool) -> None:
    """Have the file checked with these columns, by the name that an item has, anew if need be;
    at once if it is small. Raises `Stale` if that is too late, or the file is gone: a database
    that was brought back comes without the files that were on their way."""
    with transactions.transact():
        stored = _locked(job)
        if stored.state != Job.State.WAITING or stored.result["step"] == upload_files.STORE:
            raise Stale("This import is running or finished. Upload the file again.")
        if not upload_files.uploaded_path(stored).exists():
            raise Stale("The file has been deleted. Upload it again.")
        asked = {"columns": columns, "accept": accept, "step": upload_files.CHECK, "report": None}
        stored.result, stored.done = {**stored.result, **asked}, 0
        stored.save(update_fields=["result", "done"])
    if _is_small(stored):
        # A person waits: a database that is away is not waited for.
        with _hold_lease(job.pk, lambda: True) as held:
            if held:
                program.run_import(held)
                _store_outcome(held, ProgramResult(0, ""))


def start_import(job: Job, member: Membership) -> None:
    """Have what was checked imported. Raises `Stale` if there is nothing to import."""
    with transactions.transact():
        stored = _locked(job)
        if stored.state != Job.State.WAITING or stored.result["step"] != upload_files.READY:
            raise Stale("This import is running or finished. See its page.")
        stored.result["step"], stored.total = upload_files.STORE, stored.result["report"]["rows"]
        stored.member, stored.done = member, 0
        stored.save(update_fields=["result", "total", "done", "member"])


def cancel_import(job: Job, member: Membership, now: datetime) -> bool:
    """End an import that is not done; whether there was something to end. What is in stays."""
    with transactions.transact():
        stored = _locked(job)
        if stored.finished_at:
            return False
        begun = stored.result["step"] == upload_files.STORE and stored.done
        rest = f" About {stored.done:,} rows had been read; imported items stay." if begun else ""
        stored.state, stored.finished_at = Job.State.CANCELLED, now
        stored.message = f"Cancelled by {member.alias}.{rest}"
        stored.save(update_fields=["state", "finished_at", "message"])
        if stored.result["step"] == upload_files.STORE:
            _record_end(stored, member)
    return True


def due_job_ids(now: datetime) -> list[int]:
    """The ids of imports that wait for a worker, whose worker is gone, or whose time is over."""
    asked = job_queue.free_jobs_filter(now) & Q(
        result__step__in=[upload_files.CHECK, upload_files.STORE]
    )
    over = Q(result__deleted=False, result__expires__lte=now.timestamp())
    found = Job.objects.filter(asked | over & ~Q(state=Job.State.RUNNING), kind=JOB_KIND)
    return list(found.values_list("pk", flat=True))


def run_job(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Check or import a file, unless another worker is at it, or delete one whose time is over;
    whether that was done. One that is `stopped` waits for the next worker, which begins anew:
    what was stored is then found unchanged."""
    if _expire_import(job_id, timezone.now()):
        return True
    with _hold_lease(job_id, stopped) as job:
        if job is None:
            return False
        ends = time.monotonic() + MAX_DURATION.total_seconds()
        command = job_queue.manage_command("work_on_import", str(job.pk))
        ended = job_queue.run_leased(job, command, lambda: stopped() or time.monotonic() > ends)
        if time.monotonic() > ends:
            ended = ProgramResult(1, f"It took longer than {MAX_DURATION}. Split the file.")
        return _store_outcome(job, ended)


def _is_small(job: Job) -> bool:
    # What is packed may be two hundred times as large.
    return (
        upload_files.uploaded_path(job).stat().st_size <= MAX_IMMEDIATE_BYTES
        and job.result["ending"] != ".zip"
    )


def _locked(job: Job) -> Job:
    return Job.objects.select_for_update(of=("self",)).get(pk=job.pk)


def _hold_lease(job_id: int, stopped: Callable[[], bool]) -> AbstractContextManager[Job | None]:
    """Have the job for a while, as it is asked for now; None if it is not free."""
    return job_queue.hold_lease(
        job_id, JOB_KIND, stopped, result__step__in=[upload_files.CHECK, upload_files.STORE]
    )


def _store_outcome(job: Job, ended: ProgramResult) -> bool:
    """Note how the work ended, unless the import was cancelled; whether it came to its end."""
    well = ended.code == 0
    made = _outcome_values(job, upload_files.pop_outcome(job), timezone.now()) if well else {}
    return job_queue.end_job(job, ended, made) and well


def _outcome_values(job: Job, noted: dict[str, Any], now: datetime) -> dict[str, Any]:
    if noted["refused"]:
        return {"state": Job.State.FAILED, "finished_at": now, "message": noted["refused"]}
    report = noted["report"]
    if job.result["step"] == upload_files.CHECK:
        result = {**job.result, "report": report, "step": upload_files.READY}
        return {"state": Job.State.WAITING, "done": 0, "result": result}
    result = {**job.result, "report": report, "expires": (now + FILE_RETENTION).timestamp()}
    values = {"state": Job.State.FINISHED, "finished_at": now, "done": report["rows"]}
    return {**values, "result": result}


def _expire_import(job_id: int, now: datetime) -> bool:
    """Delete the files of an import whose time is over; one that nobody went on with ends."""
    with transactions.transact():
        job = Job.objects.select_for_update(of=("self",)).get(pk=job_id)
        if job.state == Job.State.RUNNING or job.result["expires"] > now.timestamp():
            return False
        if job.finished_at is None:
            job.state, job.finished_at = Job.State.CANCELLED, now
            job.message = (
                f"It was not continued for {FILE_RETENTION.days} days, so the file was deleted."
            )
        job.result["deleted"] = True
        job.save(update_fields=["state", "finished_at", "message", "result"])
    upload_files.delete_files(job)
    return True


def _record_end(job: Job, member: Membership) -> None:
    Event.record(
        "import cancelled",
        job.project.slug,
        project_id=job.project_id,
        member_id=member.pk,
        file=job.result["name"],
        rows=job.done,
    )
