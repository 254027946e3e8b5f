"""The actions that a person can take on a run, with a function that lists the possible actions."""

from collections.abc import Callable
from datetime import datetime

from django.utils import timezone

from annotation.db import transactions
from annotation.models import Membership, Project
from judging.errors import Refused
from judging.models import Run
from judging.runs import descriptions, lifecycle, supplements
from judging.runs.transitions import END_STATES, record_event


def archive_run(run: Run, member: Membership | None) -> None:
    """Hide a run from lists and figures, except where archived runs are requested; nothing is
    deleted."""
    if run.state not in END_STATES:
        raise Refused(f"Run {run.number} is {run.state}. Cancel it, or wait until it has finished.")
    _set_archived(run, member, "archived", timezone.now())


def unarchive_run(run: Run, member: Membership | None) -> None:
    """Show the run in lists and figures again. Raises `Refused` if another run has its name now."""
    _set_archived(run, member, "unarchived", None)


def _set_archived(run: Run, member: Membership | None, what: str, when: datetime | None) -> None:
    with transactions.transact():
        if when is None:
            # Names are given under this lock; its own may have been given to another run.
            Project.objects.select_for_update(no_key=True).only("pk").get(pk=run.project_id)
            run.refresh_from_db(fields=["name"])
            descriptions.check_name_free(run.project, run.name, run)
        found = Run.objects.filter(pk=run.pk, archived_at__isnull=when is not None)
        if found.update(archived_at=when):
            record_event(f"run {what}", run, member)
    run.archived_at = when


# Actions on a run, by their name in pages and the API. `resume` also needs a cap and `move` an
# endpoint, so they are not listed here.
STEPS: dict[str, Callable[[Run, Membership], object]] = {
    "pause": lifecycle.pause,
    "cancel": supplements.cancel,
    "retry": lifecycle.retry_failed,
    "archive": archive_run,
    "unarchive": unarchive_run,
}


def list_open_steps(run: Run, failed: int, *, answered: int, refused: str = "") -> list[str]:
    """List the possible actions for a run with these numbers of failed and answered requests.
    `refused` is a parameter that the run's evaluator refused.

    If another run's retry has fixed a failure, the item still counts as missing in this run until
    this run is retried too.
    """
    state = Run.State(run.state)
    steps = {
        Run.State.PLANNING: ["cancel"],
        Run.State.RUNNING: ["pause", "cancel"],
        Run.State.PAUSED: ["resume", "cancel"],
    }.get(state, [])
    asked = run.kind not in lifecycle.UNASKED_REASONS
    if asked and state in lifecycle.RETRY_STATES and (failed or run.outcomes.mended().exists()):
        steps = [*steps, "retry"]
    if supplements.can_supplement(run) and supplements.select_unusable(run).exists():
        steps = [*steps, "supplement"]
    if refused:
        steps = [*steps, "ask-without"]
    is_movable = state in lifecycle.MOVABLE_STATES and not answered and not run.occasion
    if asked and is_movable and not lifecycle.is_archived_by_hand(run):
        steps = [*steps, "move"]
    if state in END_STATES:
        steps = [*steps, "unarchive" if run.archived_at else "archive"]
    return steps
