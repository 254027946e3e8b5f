"""Jobs that create snapshots; a worker runs each one in a subprocess."""

from collections.abc import Callable
from datetime import datetime

from annotation.db import transactions
from annotation.errors import FieldError
from annotation.items.snapshots import create
from annotation.jobs import job_queue
from annotation.models import Job, Membership, Project, Snapshot

JOB_KIND = "snapshot"
NAME_LENGTH, NOTE_LENGTH = 80, 2_000


def enqueue(project: Project, member: Membership | None, name: str, note: str = "") -> Snapshot:
    """Have the next worker create a snapshot. Raises `FieldError` for a name that is taken or
    empty, and for a name or note that is too long."""
    if not 0 < len(name) <= NAME_LENGTH:
        raise FieldError(f"A name has 1 to {NAME_LENGTH} characters.", "name")
    if len(note) > NOTE_LENGTH:
        raise FieldError(f"A note has {NOTE_LENGTH:,} characters at most.", "note")
    with transactions.transact():
        Project.objects.select_for_update(no_key=True, of=("self",)).get(pk=project.pk)
        found = Snapshot.objects.in_project(project)
        if found.filter(name=name).exists():
            raise FieldError("Another snapshot has this name. Choose another name.", "name")
        job = job_queue.enqueue(project, member, JOB_KIND, name=name)
        said = {"name": name, "note": note, "member": member, "job": job}
        number = (found.order_by("-number").values_list("number", flat=True).first() or 0) + 1
        return Snapshot.objects.create(project=project, number=number, **said)


def cancel_snapshot(snapshot: Snapshot, by: Membership) -> bool:
    """Cancel an incomplete snapshot; a worker deletes what is stored of it. False if it is complete
    or has no job, or if its job cannot be cancelled."""
    if snapshot.job is None or snapshot.made_at is not None:
        return False
    return job_queue.cancel_job(snapshot.job, by)


def due_job_ids(now: datetime) -> list[int]:
    """The ids of jobs of snapshots to create, and of ended jobs of incomplete snapshots."""
    left = Snapshot.objects.left_over().values_list("job", flat=True)
    return [*job_queue.due_job_ids(JOB_KIND, now), *filter(None, left)]


def run_job(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Create a snapshot, unless another worker runs the job; returns whether it succeeded. A
    snapshot that failed or was cancelled is deleted, so that its name is free again."""
    with job_queue.hold_lease(job_id, JOB_KIND, stopped) as job:
        if job is not None:
            ended = job_queue.run_leased(
                job, job_queue.manage_command("make_snapshot", str(job.pk)), stopped
            )
            if job_queue.store_outcome(job, ended) and ended.code == 0:
                return True
    for snapshot in Snapshot.objects.left_over().filter(job=job_id):
        _delete_snapshot(snapshot)
    return False


def make_snapshot(job: Job) -> None:
    """Create the snapshot of a job and store the progress; this runs in the subprocess."""
    snapshot = Snapshot.objects.select_related("project").get(job=job)

    def note(done: int) -> None:
        with transactions.transact():
            job_queue.unfinished_job(job).update(done=done)

    create.store_contents(snapshot, note)


def _delete_snapshot(snapshot: Snapshot) -> None:
    create.delete_contents(snapshot)
    with transactions.transact():
        snapshot.delete()
