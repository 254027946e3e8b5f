"""State changes of a run, and their events in the audit log."""

from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from annotation.db import transactions
from annotation.models import Event, Membership
from judging.errors import Refused
from judging.models import Run

END_STATES = frozenset({Run.State.FINISHED, Run.State.CANCELLED})
_VERBS: dict[str, str] = {
    Run.State.PLANNING: "be planned",
    Run.State.RUNNING: "go on",
    Run.State.PAUSED: "be paused",
    Run.State.FINISHED: "finish",
    Run.State.CANCELLED: "be cancelled",
}


def change_state(
    run: Run,
    allowed: Collection[str],
    state: str,
    member: Membership | None,
    *,
    reason: str = "",
    **data: Any,
) -> None:
    """Change the state of a run. Raises `Refused` if the run is not, or no longer, in an allowed
    state."""
    finished = timezone.now() if state in END_STATES else None
    values = {"state": state, "reason": reason, "finished_at": finished}
    with transactions.transact():
        # Locked, so that the event has the state that another transition has just set.
        held = Run.objects.select_for_update(no_key=True, of=("self",)).filter(pk=run.pk)
        [was] = held.values_list("state", flat=True)
        moved = Run.objects.filter(pk=run.pk, state__in=allowed).update(**values)
        run.refresh_from_db(fields=list(values))
        if not moved:
            raise Refused(_explain_state(run, state))
        said = {"reason": reason, **data} if reason else data
        record_event(f"run {state}", run, member, old={"state": was}, new={"state": state}, **said)


def _explain_state(run: Run, state: str) -> str:
    """Return why a run cannot change to a state; another person or a worker may have been first."""
    if run.state == state:
        return f"Run {run.number} is already {state}."
    if run.state in END_STATES:
        return f"Run {run.number} is already {run.state}, so it can no longer {_VERBS[state]}."
    return f"Run {run.number} is {run.state}, so it cannot {_VERBS[state]} now."


def list_pause_reasons(run: Run) -> list[str]:
    """List the reasons of the run's pauses since it has its current endpoint."""
    pauses = _list_changes(run, Run.State.PAUSED)
    return [event.data.get("reason", "") for event in pauses]


def was_finished(run: Run) -> bool:
    """True if the run has been finished since it has its current endpoint; it may be asking
    again."""
    return _list_changes(run, Run.State.FINISHED).exists()


def _list_changes(run: Run, state: str) -> QuerySet[Event]:
    """List the changes to this state since the run has its current endpoint."""
    events = Event.objects.filter(project=run.project_id, subject=f"run {run.number}")
    moved = events.filter(kind="run moved").order_by("pk").last()
    return events.filter(kind=f"run {state}", pk__gt=moved.pk if moved else 0)


def record_event(kind: str, run: Run, member: Membership | None, **data: Any) -> None:
    """Record an event of a run in the audit log, in the transaction that makes the change."""
    Event.record(
        kind,
        f"run {run.number}",
        project_id=run.project_id,
        member_id=member.pk if member else None,
        **data,
    )
