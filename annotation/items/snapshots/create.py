"""Creates a snapshot: all items are read in one consistent state and stored in batches.

Reading locks nothing and each write transaction is short, so people can continue working. Changes
that they make in the meantime are not in the snapshot.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from tempfile import TemporaryFile
from typing import IO

from django.utils import timezone

from annotation.db import bulk, snapshot_reads, transactions
from annotation.db.batches import make_bulky_batches
from annotation.errors import FieldError
from annotation.items.snapshots import facts
from annotation.items.snapshots.facts import FactState
from annotation.jobs import job_queue, subprocesses
from annotation.models import Event, Frozen, FrozenIn, Job, Membership, Project, Snapshot

# Items per transaction, fewer with long fields; at about 10,000 items a second, a transaction
# takes less than 0.2 s.
BATCH_SIZE = 1_000
ReportCount = Callable[[int], None]


def store_contents(snapshot: Snapshot, tell: ReportCount = lambda done: None) -> None:
    """Store the contents of the snapshot and complete it. Contents left by a failed attempt are
    deleted first.

    `tell` is called with the number of items stored so far.
    """
    delete_contents(snapshot)
    with TemporaryFile("w+", encoding="utf-8") as kept:
        with snapshot_reads.consistent_reads():
            found = _write_states(facts.read_states(snapshot.project), kept)
        kept.seek(0)
        done = 0
        for some in _read_states(kept):
            _store(snapshot, some)
            done += len(some)
            tell(done)
            subprocesses.send_heartbeat()
    _close(snapshot, done, found)


def delete_contents(snapshot: Snapshot) -> None:
    """Delete the contents of an incomplete snapshot. States of items are kept: other snapshots may
    share them."""
    while ids := list(
        FrozenIn.objects.of_snapshot(snapshot).values_list("pk", flat=True)[:BATCH_SIZE]
    ):
        with transactions.transact():
            FrozenIn.objects.filter(pk__among=ids).delete()
        subprocesses.send_heartbeat()


def _write_states(states: Iterable[FactState], kept: IO[str]) -> str:
    """Write states as JSON lines. Return their digest, which depends on the facts and their
    order."""
    digest = hashlib.sha256()
    for number, one in enumerate(states):
        if number % BATCH_SIZE == 0:
            subprocesses.send_heartbeat()
        digest.update(f"{one.digest}\n".encode())
        kept.write(json.dumps([one.item, one.revision, one.value, one.facts, one.digest]) + "\n")
    return digest.hexdigest()


def _read_states(kept: IO[str]) -> Iterator[list[FactState]]:
    for lines in make_bulky_batches(kept, BATCH_SIZE, len):
        yield [FactState(*json.loads(line)) for line in lines]


def _store(snapshot: Snapshot, states: list[FactState]) -> None:
    with transactions.transact():
        # Snapshots take turns, so that two never store the same state of an item.
        Project.objects.select_for_update(no_key=True).only("pk").get(pk=snapshot.project_id)
        known = _known_state_ids(states)
        new = [one for one in states if (one.item, one.digest) not in known]
        ids = bulk.reserve_ids(Frozen, len(new))
        rows = [_row(pk, one) for pk, one in zip(ids, new, strict=True)]
        bulk.compress_fast()
        bulk.copy(Frozen, rows)
        known |= {(one.item, one.digest): pk for pk, one in zip(ids, new, strict=True)}
        places = bulk.reserve_ids(FrozenIn, len(states))
        bulk.copy(
            FrozenIn,
            [
                {
                    "id": place,
                    "snapshot_id": snapshot.pk,
                    "item_id": one.item,
                    "frozen_id": known[one.item, one.digest],
                }
                for place, one in zip(places, states, strict=True)
            ],
        )


def _known_state_ids(states: list[FactState]) -> dict[tuple[int, str], int]:
    """Map item id and digest to the id of the stored state, for these states."""
    found = Frozen.objects.filter(item__among=[one.item for one in states])
    return {(item, digest): pk for item, digest, pk in found.values_list("item", "digest", "pk")}


def _row(pk: int, one: FactState) -> dict[str, object]:
    return {
        "id": pk,
        "item_id": one.item,
        "revision_id": one.revision,
        "value": one.value,
        "facts": json.dumps(one.facts),
        "digest": one.digest,
    }


def _close(snapshot: Snapshot, items: int, digest: str) -> None:
    values = {"digest": digest, "items": items, "made_at": timezone.now()}
    with transactions.transact():
        Snapshot.objects.filter(pk=snapshot.pk, made_at=None).update(**values)
        Event.record(
            "snapshot",
            snapshot.name,
            project_id=snapshot.project_id,
            member_id=snapshot.member_id,
            number=snapshot.number,
            items=items,
            digest=digest,
        )


JOB_KIND = "snapshot"
NAME_LENGTH, NOTE_LENGTH = 80, 2_000


def enqueue(project: Project, member: Membership | None, name: str, note: str = "") -> Snapshot:
    """Have the next worker create a snapshot. Raises `FieldError` for a name that is taken or
    empty, and for a name or note that is too long."""
    if not 0 < len(name) <= NAME_LENGTH:
        raise FieldError(f"A name has 1 to {NAME_LENGTH} characters.", "name")
    if len(note) > NOTE_LENGTH:
        raise FieldError(f"A note has at most {NOTE_LENGTH:,} characters.", "note")
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
    """Cancel an incomplete snapshot; a worker deletes its stored contents. False if it is complete
    or has no job, or if its job cannot be cancelled."""
    if snapshot.job is None or snapshot.made_at is not None:
        return False
    return job_queue.cancel_job(snapshot.job, by)


def due_job_ids(now: datetime) -> list[int]:
    """Return the ids of the jobs that have a snapshot to create, and of the ended jobs whose
    snapshot is incomplete."""
    left = Snapshot.objects.left_over().values_list("job", flat=True)
    return [*job_queue.due_job_ids(JOB_KIND, now), *filter(None, left)]


def run_job(job_id: int, *, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Create the snapshot of a job, unless another worker runs the job. Return True on success. A
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
    """Create the snapshot of a job and store the progress. This is run in a subprocess."""
    snapshot = Snapshot.objects.select_related("project").get(job=job)

    def note(done: int) -> None:
        with transactions.transact():
            job_queue.unfinished_job(job).update(done=done)

    store_contents(snapshot, note)


def _delete_snapshot(snapshot: Snapshot) -> None:
    delete_contents(snapshot)
    with transactions.transact():
        snapshot.delete()
