"""Imports from the browser or the API: one job each, run by a worker.

A file is inspected when it is uploaded. Once its columns are chosen it is checked, which stores
nothing; then the import waits until somebody starts it. Long work runs in a separate process, so
that a file that is hard to read blocks nothing else.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from annotation.db import transactions
from annotation.errors import FieldError, Stale
from annotation.importing import program, upload_files
from annotation.jobs import job_queue
from annotation.jobs.subprocesses import ProgramResult
from annotation.models import Event, Job, Membership, Project

JOB_KIND = "import"
# Imports that wait for a person, not for a worker.
WAITS_FOR_PERSON = Q(kind=JOB_KIND, result__step__in=[upload_files.CHOOSE, upload_files.READY])
# The files of an import are deleted after this time.
FILE_RETENTION = timedelta(days=7)
# The import of a file is stopped after this time.
MAX_DURATION = timedelta(hours=2)
# Files up to this size are checked while the person waits, for about a second at most. A row takes
# time, however short it is.
MAX_IMMEDIATE_BYTES, MAX_IMMEDIATE_LINES = 1_000_000, 10_000
# Rows corrected on the page are kept in the row of the job.
MAX_CORRECTIONS, MAX_CORRECTED_LENGTH = 200, 2_000_000


def list_imports(project: Project) -> QuerySet[Job]:
    """Return the imports of a project, the latest first."""
    return job_queue.list_jobs(project, JOB_KIND).select_related("member", "project__task_type")


def find_import(project: Project, number: int) -> Job | None:
    """Return the project's import with this number; None if there is none."""
    return list_imports(project).filter(result__number=number).first()


def describe_progress(project: Project) -> str:
    """Describe the progress of the oldest import that a worker runs or will run; "" if there is
    none. Imports that wait for a person are ignored."""
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
    """Create a job for an inspected file. Call this in the transaction that moves the file."""
    expires = (now + FILE_RETENTION).timestamp()
    return job_queue.enqueue(
        member.project, member, JOB_KIND, **told, expires=expires, deleted=False
    )


def choose_columns(
    job: Job, columns: dict[str, str], *, accept: bool, categories: dict[str, str] | None = None
) -> None:
    """Set the file column for each item column, then have the file checked (again if necessary).
    `categories` has the category that is meant by each of these words; "" if it means none.

    Small files are checked at once. Raises `Stale` if it is too late to choose, or if the file is
    missing: a restored backup does not contain the files of unfinished imports.
    """
    _begin_check(job, {"columns": columns, "accept": accept}, categories or {})


def check_again(job: Job, categories: dict[str, str] | None = None) -> None:
    """Have a checked file checked again, with the columns that are chosen. Raises like
    `choose_columns`."""
    if not awaits_start(job):
        raise Stale("This import is running or finished. See its page.")
    _begin_check(job, {}, categories or {})


def _begin_check(job: Job, chosen: dict[str, Any], categories: dict[str, str]) -> None:
    with transactions.transact():
        stored = _locked(job)
        if stored.state != Job.State.WAITING or stored.result["step"] == upload_files.STORE:
            raise Stale("This import is running or finished. Upload the file again.")
        if not upload_files.uploaded_path(stored).exists():
            raise Stale("The file has been deleted. Upload it again.")
        words = {**stored.result.get("categories", {}), **categories}
        asked = {
            **chosen,
            "categories": {word: slug for word, slug in words.items() if slug},
            "corrections": [
                {**one, "checked": True}
                for one in upload_files.list_corrections(stored)
                if one["values"]
            ],
            "step": upload_files.CHECK,
            "report": None,
            "checks": count_checks(stored) + 1,
        }
        stored.result, stored.done = {**stored.result, **asked}, 0
        stored.save(update_fields=["result", "done"])
    if _is_small(stored):
        # Do not wait for an unavailable database, because a person is waiting.
        with _hold_lease(job.pk, lambda: True) as held:
            if held:
                program.run_import(held)
                _store_outcome(held, ProgramResult(0, ""))


def awaits_start(job: Job) -> bool:
    """True if the file is checked and the import has not been started."""
    return job.state == Job.State.WAITING and job.result["step"] == upload_files.READY


def count_checks(job: Job) -> int:
    """How often the file was checked: each check may be of other columns, categories or rows."""
    return int(job.result.get("checks", 0))


def is_unchecked(job: Job) -> bool:
    """True if rows were corrected since the last check."""
    return not all(one.get("checked") for one in upload_files.list_corrections(job))


def correct_row(job: Job, place: dict[str, Any], values: dict[str, str]) -> None:
    """Keep the corrected values of a row of the file; the last correction counts. Without values,
    the row counts as it is in the file. `place` has the row's file and line, and what names it.

    Raises `Stale` if the file is not in between check and import, and `FieldError` if there is more
    to keep than belongs into the row of a job.
    """
    with transactions.transact():
        stored = _locked(job)
        if not awaits_start(stored):
            raise Stale("The file is being checked or imported. See the page of the import.")
        at = (place["file"], place["line"])
        others = [
            one for one in upload_files.list_corrections(stored) if (one["file"], one["line"]) != at
        ]
        # Also a correction that is removed changes what the check has seen.
        kept = [*others, {**place, "values": values, "checked": False}]
        size = sum(len(value) for one in kept for value in one["values"].values())
        if len(kept) > MAX_CORRECTIONS or size > MAX_CORRECTED_LENGTH:
            raise FieldError(
                f"At most {MAX_CORRECTIONS} rows, of {MAX_CORRECTED_LENGTH:,} characters in all, "
                "can be corrected here. Correct the others in the file."
            )
        stored.result["corrections"] = kept
        stored.save(update_fields=["result"])


def start_import(job: Job, member: Membership, *, shown: str = "") -> None:
    """Start the import of a checked file. Raises `Stale` if there is nothing to import, if rows
    were corrected after the check, or if the person saw another check than the last one. `shown` is
    the number of the check that they saw; "" if nobody looked at one."""
    with transactions.transact():
        stored = _locked(job)
        if awaits_start(stored) and is_unchecked(stored):
            raise Stale("Rows were corrected after the check. Check the file again first.")
        if not awaits_start(stored):
            raise Stale("This import is running or finished. See its page.")
        if shown and shown != str(count_checks(stored)):
            raise Stale(
                "The file was checked again since this page was loaded, perhaps with other "
                "columns. Look at the preview again, then import."
            )
        stored.result["step"], stored.total = upload_files.STORE, stored.result["report"]["rows"]
        stored.member, stored.done = member, 0
        stored.save(update_fields=["result", "total", "done", "member"])


def cancel_import(job: Job, member: Membership, now: datetime) -> bool:
    """Cancel an unfinished import. Return False if it had already finished. Imported items stay."""
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
    """Return the ids of the imports that wait for a worker, have lost their worker or have
    expired; projects take turns."""
    asked = job_queue.free_jobs_filter(now) & Q(
        result__step__in=[upload_files.CHECK, upload_files.STORE]
    )
    over = Q(result__deleted=False, result__expires__lte=now.timestamp())
    found = Job.objects.filter(asked | over & ~Q(state=Job.State.RUNNING), kind=JOB_KIND)
    return job_queue.in_turn(found, JOB_KIND, now)


def run_job(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Check or import the file of a job, unless another worker has the job. Delete an expired
    import.

    Return True on success. A job that was `stopped` waits for the next worker, which starts again
    and finds the stored items unchanged.
    """
    if _expire_import(job_id, timezone.now()):
        return True
    with _hold_lease(job_id, stopped) as job:
        if job is None:
            return False
        ends = time.monotonic() + MAX_DURATION.total_seconds()
        command = job_queue.manage_command("work_on_import", str(job.pk))
        ended = job_queue.run_leased(job, command, lambda: stopped() or time.monotonic() > ends)
        if time.monotonic() > ends:
            ended = ProgramResult(1, f"The import took longer than {MAX_DURATION}. Split the file.")
        return _store_outcome(job, ended)


def _is_small(job: Job) -> bool:
    path = upload_files.uploaded_path(job)
    # The content of an archive may be two hundred times as large.
    if job.result["ending"] == ".zip" or path.stat().st_size > MAX_IMMEDIATE_BYTES:
        return False
    return path.read_bytes().count(b"\n") <= MAX_IMMEDIATE_LINES


def _locked(job: Job) -> Job:
    return Job.objects.select_for_update(of=("self",)).get(pk=job.pk)


def _hold_lease(job_id: int, stopped: Callable[[], bool]) -> AbstractContextManager[Job | None]:
    """Lease the job for a while and return it with its current values; None if it is not free."""
    return job_queue.hold_lease(
        job_id, JOB_KIND, stopped, result__step__in=[upload_files.CHECK, upload_files.STORE]
    )


def _store_outcome(job: Job, ended: ProgramResult) -> bool:
    """Store the outcome unless the import was cancelled. Return True on success."""
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
    expires = (now + FILE_RETENTION).timestamp()
    # The texts of the corrections are those of the items now.
    result = {**job.result, "report": report, "expires": expires, "corrections": []}
    values = {"state": Job.State.FINISHED, "finished_at": now, "done": report["rows"]}
    return {**values, "result": result}


def _expire_import(job_id: int, now: datetime) -> bool:
    """Delete the files of an expired import, and cancel the import if it had not finished."""
    with transactions.transact():
        job = Job.objects.select_for_update(of=("self",)).get(pk=job_id)
        if job.state == Job.State.RUNNING or job.result["expires"] > now.timestamp():
            return False
        if job.finished_at is None:
            job.state, job.finished_at = Job.State.CANCELLED, now
            job.message = (
                f"The import was not continued for {FILE_RETENTION.days} days, so the file was "
                "deleted."
            )
        job.result |= {"deleted": True, "corrections": []}
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
