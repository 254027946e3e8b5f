"""Exports that are asked for in the browser: a job each, done by a worker, kept for some days."""

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

from annotation import instants, jobs, programs, writing
from annotation.models import Event, Job, Membership, Project
from annotation.programs import Ended
from formats.writers import Packed, beside, ending, write_file
from judging import cards, exported, passwords
from judging.exported import Wish
from judging.results.tables import EXPORTS, KINDS

KIND = "export"
# So long a file can be taken; then it is deleted.
KEPT = timedelta(days=7)
# The tables of evaluators, for those who see results; all others are for who manages.
OF_RESULTS = ("calls", "outcomes")
# How far an export is, is told every so many rows.
TELL_EVERY = 1_000


def offered(member: Membership) -> tuple[str, ...]:
    """The tables that the member may export."""
    return tuple(name for name in EXPORTS if member.is_lead or name in OF_RESULTS)


def want(project: Project, member: Membership, wish: Wish) -> Job:
    """Have an export made by the next worker; its number is one of the project's exports.

    Raises FieldError as `exported.check` does.
    """
    exported.check(project, wish)
    asked = asdict(wish) | {"canary": canary() if wish.canary else ""}
    if wish.encrypt:
        asked[passwords.NONCE] = passwords.number()
    return jobs.want(project, member, KIND, **asked)


def of_member(member: Membership) -> QuerySet[Job]:
    """The project's exports of tables that the member may have, the last first."""
    return jobs.of_project(member.project, KIND).filter(result__table__in=offered(member))


def path(job: Job) -> Path:
    """Where the file of a job is; nothing that a person wrote names it."""
    suffix = ending(job.result["form"], encrypted=job.result.get("encrypt", False))
    return settings.VAR_DIR / "exports" / f"export-{job.pk}.{suffix}"


def can_be_taken(job: Job, now: datetime) -> bool:
    there = job.state == Job.State.FINISHED and job.result["expires"] > now.timestamp()
    return there and path(job).exists()


def password_for(job: Job, member: Membership) -> str:
    """The password of a file that is there, for who asked for it; "" for others and otherwise."""
    is_theirs = member.pk is not None and job.member_id == member.pk
    return passwords.of(job.result) if is_theirs and can_be_taken(job, timezone.now()) else ""


def due(now: datetime) -> list[int]:
    """The ids of exports that wait for a worker, whose worker is gone, or whose time is over."""
    over = Q(state=Job.State.FINISHED, result__expires__lte=now.timestamp())
    found = Job.objects.filter(jobs.free(now) | over & Q(result__deleted=False), kind=KIND)
    return list(found.values_list("pk", flat=True))


def work(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Make an export, unless another worker is at it, or delete the file of one whose time is
    over; whether that was done. One that is `stopped` waits for the next worker, which begins
    anew."""
    if _delete(job_id):
        return True
    with jobs.taken(job_id, KIND, stopped) as job:
        if job is None:
            return False
        command = jobs.manage("make_export", str(job.pk))
        return _leave(job, jobs.run(job, command, stopped, lambda line: _tell(job, line)))


def write(job: Job, told: Callable[[int], object] = int) -> int:
    """Write the table that a job is of, as it is at one instant, and tell how many rows are done;
    the number of rows."""
    wish = _wish(job)
    jobs.note(job, total=exported.count(job.project, wish))
    path(job).parent.mkdir(parents=True, exist_ok=True)
    with instants.held():
        made = exported.rows(job.project, wish, job.result["canary"])
        rows = _counted(made.rows, told)
        packed = _packed(job, wish)
        count = write_file(wish.form, rows, made.columns, path(job), KINDS, packed)
    # Told last as well: who listens may store what was told after this has stored the number.
    told(count)
    jobs.note(job, done=count)
    return count


def _packed(job: Job, wish: Wish) -> Packed:
    card = cards.card(job.project, wish, job.result["canary"], timezone.now())
    return Packed(wish.table, passwords.of(job.result), card, programs.alive)


def _wish(job: Job) -> Wish:
    # Those that were asked for by an earlier version name none of the last ones.
    said = {name: job.result.get(name, "") for name in ("table", "form", "snapshot", "licence")}
    encrypt = job.result.get("encrypt", False)
    return Wish(**said, filters=job.result["filters"], encrypt=encrypt)


def _counted(
    rows: Iterator[dict[str, Any]], told: Callable[[int], object]
) -> Iterator[dict[str, Any]]:
    for count, row in enumerate(rows):
        if count % TELL_EVERY == 0:
            told(count)
        yield row


def _tell(job: Job, line: str) -> None:
    if line.isdigit():
        jobs.note(job, done=int(line))


def _leave(job: Job, ended: Ended) -> bool:
    """Note how the program ended, unless the export was cancelled, of which nothing stays."""
    made, now = ended.code == 0, timezone.now()
    values: dict[str, Any] = {}
    if made:
        expires, size = (now + KEPT).timestamp(), path(job).stat().st_size
        result = {**job.result, "bytes": size, "expires": expires, "deleted": False}
        values = {"state": Job.State.FINISHED, "finished_at": now, "result": result}
    with writing.transact():
        kept = jobs.end(job, ended, values) and made
        if kept:
            _record(job)
    if not kept:
        path(job).unlink(missing_ok=True)
    for part in path(job).parent.glob(f"{beside(path(job))}*"):
        shutil.rmtree(part, ignore_errors=True)
    return kept


def _record(job: Job) -> None:
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
    )


def _delete(job_id: int) -> bool:
    """Delete the file of an export whose time is over; False if it is not. What was finished
    after a worker had looked what is due is not."""
    job = Job.objects.get(pk=job_id)
    if job.state != Job.State.FINISHED or job.result["expires"] > timezone.now().timestamp():
        return False
    path(job).unlink(missing_ok=True)
    with writing.transact():
        job.result["deleted"] = True
        job.result.pop(passwords.NONCE, None)
        job.save(update_fields=["result"])
    return True


def canary() -> str:
    """A text that no other export has."""
    return f"Test data. Do not train models on it. blindspot-canary {uuid.uuid4()}"
