"""Exports that are asked for in the browser: a job each, done by a worker, kept for some days."""

import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet

from annotation import instants, programs, writing
from annotation.models import Event, Job, Membership, Project
from annotation.settings import free
from formats.writers import ending, write_file
from judging import clock, exported
from judging.exported import Wish
from judging.results.tables import EXPORTS, KINDS

KIND = "export"
# So long a file can be taken; then it is deleted.
KEPT = timedelta(days=7)
# A worker that was killed is noticed after this long.
LEASE = timedelta(seconds=60)
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
    asked = asdict(wish) | {"canary": _canary() if wish.canary else ""}
    with writing.transact():
        Project.objects.select_for_update(no_key=True, of=("self",)).get(pk=project.pk)
        number = Job.objects.filter(project=project, kind=KIND).count() + 1
        return Job.objects.create(
            project=project, kind=KIND, member=member, result={"number": number, **asked}
        )


def of_member(member: Membership) -> QuerySet[Job]:
    """The project's exports of tables that the member may have, the last first."""
    found = Job.objects.filter(project=member.project, kind=KIND).select_related("member")
    return found.filter(result__table__in=offered(member))


def cancel(job: Job, member: Membership) -> bool:
    """End an export that is not done; whether there was something to end."""
    ended = {"state": Job.State.FAILED, "message": f"Cancelled by {member.alias}."}
    with writing.transact():
        return bool(_unfinished(job).update(finished_at=clock.now(), **ended))


def path(job: Job) -> Path:
    """Where the file of a job is; nothing that a person wrote names it."""
    return settings.VAR_DIR / "exports" / f"export-{job.pk}.{ending(job.result['form'])}"


def can_be_taken(job: Job, now: datetime) -> bool:
    there = job.state == Job.State.FINISHED and job.result["expires"] > now.timestamp()
    return there and path(job).exists()


def due(now: datetime) -> list[int]:
    """The ids of exports that wait for a worker, whose worker is gone, or whose time is over."""
    over = Q(state=Job.State.FINISHED, result__expires__lte=now.timestamp())
    found = Job.objects.filter(free(now) | over & Q(result__deleted=False), kind=KIND)
    return list(found.values_list("pk", flat=True))


def work(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Make an export, unless another worker is at it, or delete the file of one whose time is
    over; whether that was done. One that is `stopped` waits for the next worker, which begins
    anew."""
    job = Job.objects.select_related("project").get(pk=job_id)
    if job.state == Job.State.FINISHED:
        return _delete(job)
    if not _hold(job, free(clock.now())):
        return False
    ended = programs.run(
        _command(job),
        stopped=lambda: stopped() or not _unfinished(job).exists(),
        hold=lambda: _hold(job, Q()),
        every=LEASE.total_seconds() / 3,
        told=lambda line: _tell(job, line),
    )
    return _leave(job, ended)


def write(job: Job, told: Callable[[int], object] = int) -> int:
    """Write the table that a job is of, as it is at one instant, and tell how many rows are done;
    the number of rows."""
    wish = _wish(job)
    _note(job, total=exported.count(job.project, wish))
    path(job).parent.mkdir(parents=True, exist_ok=True)
    with instants.held():
        made = exported.rows(job.project, wish, job.result["canary"])
        rows = _counted(made.rows, told)
        count = write_file(job.result["form"], rows, made.columns, path(job), KINDS)
    _note(job, done=count)
    return count


def _wish(job: Job) -> Wish:
    # Those that were asked for before there were snapshots name none.
    said = {name: job.result.get(name, "") for name in ("table", "form", "snapshot")}
    return Wish(**said, filters=job.result["filters"])


def _counted(
    rows: Iterator[dict[str, Any]], told: Callable[[int], object]
) -> Iterator[dict[str, Any]]:
    for count, row in enumerate(rows):
        if count % TELL_EVERY == 0:
            told(count)
        yield row


def _tell(job: Job, line: str) -> None:
    if line.isdigit():
        _note(job, done=int(line))


def _note(job: Job, **values: int | None) -> None:
    with writing.transact():
        _unfinished(job).update(**values)


def _hold(job: Job, on: Q) -> bool:
    """Have the job until LEASE is over, if it is unfinished and this is true of it."""
    job.result["until"] = (clock.now() + LEASE).timestamp()
    with writing.transact():
        found = _unfinished(job).filter(on)
        return bool(found.update(state=Job.State.RUNNING, result=job.result))


def _leave(job: Job, ended: programs.Ended) -> bool:
    """Note how the program ended, unless the export was cancelled, of which nothing stays."""
    now, made = clock.now(), ended.code == 0
    values: dict[str, Any] = {"state": Job.State.WAITING}
    if made:
        expires = (now + KEPT).timestamp()
        size = path(job).stat().st_size
        result = {**job.result, "bytes": size, "expires": expires, "deleted": False}
        values = {"state": Job.State.FINISHED, "finished_at": now, "result": result}
    elif ended.code:
        values = {"state": Job.State.FAILED, "finished_at": now, "message": ended.said}
    with writing.transact():
        kept = bool(_unfinished(job).update(**values)) and made
        if kept:
            _record(job)
    if not kept:
        path(job).unlink(missing_ok=True)
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
    )


def _delete(job: Job) -> bool:
    path(job).unlink(missing_ok=True)
    with writing.transact():
        job.result["deleted"] = True
        job.save(update_fields=["result"])
    return True


def _unfinished(job: Job) -> QuerySet[Job]:
    return Job.objects.filter(pk=job.pk, finished_at=None)


def _command(job: Job) -> list[str]:
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), "make_export", str(job.pk)]


def _canary() -> str:
    return f"Test data. Do not train models on it. blindspot-canary {uuid.uuid4()}"
