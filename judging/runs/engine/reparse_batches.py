"""Decide a run's outcomes again after its parser was switched, in batches.

The progress is stored among the run's pins, so that any worker can continue an interrupted switch.
"""

from annotation.db import transactions
from judging.models import Run
from judging.runs.engine import outcomes

PROGRESS_KEY = "rereading"
BATCH = 200


def decide_remaining(run: Run) -> None:
    """Decide the outcomes that the new parser has not decided yet, batch by batch."""
    while _decide_next_batch(run):
        pass


def _decide_next_batch(run: Run) -> bool:
    """Decide one batch; return whether there may be more."""
    with transactions.transact():
        held = Run.objects.select_for_update(no_key=True).only("pk", "pinned").get(pk=run.pk)
        if PROGRESS_KEY not in held.pinned:
            return False
        settled = run.outcomes.settled().filter(pk__gt=held.pinned[PROGRESS_KEY]).order_by("pk")
        batch = list(settled.values_list("pk", flat=True)[:BATCH])
        outcomes.decide_again(batch)
        pinned = {name: value for name, value in held.pinned.items() if name != PROGRESS_KEY}
        run.pinned = {**pinned, PROGRESS_KEY: batch[-1]} if batch else pinned
        Run.objects.filter(pk=run.pk).update(pinned=run.pinned)
    return bool(batch)
