"""Exports requested in the browser. Each export is a job for a worker, and its file is kept for
some days.
"""

import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone

from annotation.db import snapshot_reads, transactions
from annotation.jobs import job_queue, subprocesses
from annotation.jobs.subprocesses import ProgramResult
from annotation.models import Event, Job, Membership, Project
from formats.writers import PackingOptions, file_ending, temporary_prefix, write_file
from judging.exporting import dataset_card, passwords
from judging.exporting import rows as exporting_rows
from judging.exporting.rows import ExportRequest
from judging.exporting.tables import EXPORT_COLUMN_KINDS, EXPORT_TABLES

KIND = "export"
# A file can be downloaded for this long; then it is deleted.
RETENTION = timedelta(days=7)
# Tables about evaluators, for everybody who may see results; the other tables are for leads.
RESULT_TABLES = ("runs", "calls", "outcomes")
# The number of rows between two progress reports.
PROGRESS_ROWS = 1_000


def list_tables(member: Membership) -> tuple[str, ...]:
    """The tables that the member may export."""
    return tuple(name for name in EXPORT_TABLES if member.is_lead or name in RESULT_TABLES)


def enqueue(project: Project, member: Membership, wish: ExportRequest) -> Job:
    """Create an export job for the next free worker. The job gets the next number among the
    project's exports.

    Raises FieldError like `rows.check_request`.
    """
    exporting_rows.check_request(project, wish)
    asked = asdict(wish) | {"canary": generate_canary() if wish.canary else ""}
    if wish.encrypt:
        asked[passwords.NONCE_KEY] = passwords.generate_nonce()
    return job_queue.enqueue(project, member, KIND, **asked)


def list_exports(member: Membership) -> QuerySet[Job]:
    """The project's exports of tables that the member may export, newest first."""
    return job_queue.list_jobs(member.project, KIND).filter(result__table__in=list_tables(member))


def get_path(job: Job) -> Path:
    """The path of a job's file; it contains no text from users."""
    suffix = file_ending(job.result["form"], encrypted=job.result.get("encrypt", False))
    return settings.VAR_DIR / "exports" / f"export-{job.pk}.{suffix}"


def can_download(job: Job, now: datetime) -> bool:
    """True if the export has finished and not expired, and its file still exists."""
    there = job.state == Job.State.FINISHED and job.result["expires"] > now.timestamp()
    return there and get_path(job).exists()


def get_password(job: Job, member: Membership) -> str:
    """The password of an existing file, for the member who requested it; otherwise ""."""
    is_theirs = member.pk is not None and job.member_id == member.pk
    return passwords.derive(job.result) if is_theirs and can_download(job, timezone.now()) else ""


def due_job_ids(now: datetime) -> list[int]:
    """Return the ids of exports that wait for a worker, whose worker has died, or whose file has
    expired; projects take turns."""
    over = Q(state=Job.State.FINISHED, result__expires__lte=now.timestamp())
    found = Job.objects.filter(
        job_queue.free_jobs_filter(now) | over & Q(result__deleted=False), kind=KIND
    )
    return job_queue.in_turn(found, KIND, now)


def run_job(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Write an export unless another worker has it, or delete its expired file. Return True if
    anything was done. If the export is `stopped`, the next worker starts it again.
    """
    if _delete_expired(job_id):
        return True
    with job_queue.hold_lease(job_id, KIND, stopped) as job:
        if job is None:
            return False
        command = job_queue.manage_command("make_export", str(job.pk))
        return _finish(
            job, job_queue.run_leased(job, command, stopped, lambda line: _note_progress(job, line))
        )


def write_export(job: Job, told: Callable[[int], object] = int) -> int:
    """Write the table of a job from one consistent state, and report the progress; return the
    number of rows."""
    wish = _read_request(job)
    job_queue.store_values(job, total=exporting_rows.count_rows(job.project, wish))
    get_path(job).parent.mkdir(parents=True, exist_ok=True)
    with snapshot_reads.consistent_reads():
        made = exporting_rows.read_rows(job.project, wish, job.result["canary"])
        rows = _report_progress(made.rows, told)
        packed = _packing_options(job, wish)
        count = write_file(
            wish.form, rows, made.columns, get_path(job), EXPORT_COLUMN_KINDS, packed
        )
    # Report the final number too: otherwise an earlier report could be stored last.
    told(count)
    job_queue.store_values(job, done=count)
    return count


def _packing_options(job: Job, wish: ExportRequest) -> PackingOptions:
    card = dataset_card.make_card_builder(job.project, wish, job.result["canary"], timezone.now())
    return PackingOptions(
        wish.table, passwords.derive(job.result), card, subprocesses.send_heartbeat
    )


def _read_request(job: Job) -> ExportRequest:
    # Jobs of earlier versions lack the last of these values.
    said: dict[str, Any] = {
        name: job.result.get(name, "") for name in ("table", "form", "snapshot", "licence")
    }
    said |= {name: job.result.get(name, False) for name in ("encrypt", "with_control")}
    return ExportRequest(**said, filters=job.result["filters"])


def _report_progress(
    rows: Iterator[dict[str, Any]], told: Callable[[int], object]
) -> Iterator[dict[str, Any]]:
    for count, row in enumerate(rows):
        if count % PROGRESS_ROWS == 0:
            told(count)
        yield row


def _note_progress(job: Job, line: str) -> None:
    if line.isdigit():
        job_queue.store_values(job, done=int(line))


def _finish(job: Job, ended: ProgramResult) -> bool:
    """Record how the process ended; if the export was cancelled, delete its file."""
    made, now = ended.code == 0, timezone.now()
    values: dict[str, Any] = {}
    if made:
        expires, size = (now + RETENTION).timestamp(), get_path(job).stat().st_size
        result = {**job.result, "bytes": size, "expires": expires, "deleted": False}
        values = {"state": Job.State.FINISHED, "finished_at": now, "result": result}
    with transactions.transact():
        kept = job_queue.end_job(job, ended, values) and made
        if kept:
            _record_event(job)
    if not kept:
        job.refresh_from_db(fields=["state"])
        if job.state in (Job.State.RUNNING, Job.State.FINISHED):
            return False  # another worker has taken over, and the files are its own
        get_path(job).unlink(missing_ok=True)
    for part in get_path(job).parent.glob(f"{temporary_prefix(get_path(job))}*"):
        shutil.rmtree(part, ignore_errors=True)
    return kept


def _record_event(job: Job) -> None:
    job.refresh_from_db()
    Event.record(
        "export",
        job.result["table"],
        project_id=job.project_id,
        member_id=job.member_id,
        format=job.result["form"],
        rows=job.done,
        filters=job.result["filters"],
        canary=job.result["canary"],
        snapshot=job.result.get("snapshot", ""),
        licence=job.result.get("licence", ""),
        encrypted=job.result.get("encrypt", False),
        with_control=job.result.get("with_control", False),
    )


def _delete_expired(job_id: int) -> bool:
    """Delete the file of an expired export. Return False if the export has not expired, or was
    finished only after the worker looked for due work.
    """
    job = Job.objects.get(pk=job_id)
    if job.state != Job.State.FINISHED or job.result["expires"] > timezone.now().timestamp():
        return False
    get_path(job).unlink(missing_ok=True)
    with transactions.transact():
        job.result["deleted"] = True
        job.result.pop(passwords.NONCE_KEY, None)
        job.save(update_fields=["result"])
    return True


def generate_canary() -> str:
    """A string that no other export contains."""
    return f"Test data. Do not train models on it. blindspot-canary {uuid.uuid4()}"
