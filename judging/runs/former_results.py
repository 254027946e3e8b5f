"""What a run was before its failed requests were sent again, so that a retry can be cancelled.

An outcome that a retry opens keeps its result of before, and the failures of its requests, in its
values until it is decided again.
"""

import json
from collections import defaultdict
from collections.abc import Collection
from typing import Any

from django.db.models import Q

from annotation.db import batches, bulk
from judging.models import Outcome, Request, Run
from judging.runs import spending
from judging.runs.engine import outcomes
from judging.runs.models import OutcomeQuerySet

# The key in the values of a pending outcome.
BEFORE = "before"
BATCH = 500
_DECISION = ("result", "detail", "cause", "share", "values")
_FAILURE = ("cause", "message", "attempts", "tried")
_REQUEST = {
    "state": "text",
    "cause": "text",
    "message": "text",
    "attempts": "integer",
    "tried": "jsonb",
}


def keep_and_reopen(run: Run, unsure: Collection[int]) -> None:
    """Make these settled outcomes pending again, each with its result of before, and keep the
    failures of all requests. Call this before the failed requests are sent again."""
    failed = run.calls.filter(request__state=Request.State.FAILED)
    pending = run.outcomes.pending().filter(pk__in=failed.values("outcome"))
    ids = [*unsure, *pending.values_list("pk", flat=True)]
    for part in batches.make_batches(ids, BATCH):
        failures: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
        columns = ("outcome", "request__digest", *(f"request__{name}" for name in _FAILURE))
        for outcome, digest, *failure in failed.filter(outcome__in=part).values_list(*columns):
            failures[outcome][digest] = dict(zip(_FAILURE, failure, strict=True))
        rows = []
        for outcome in Outcome.objects.filter(pk__in=part):
            held = {name: getattr(outcome, name) for name in _DECISION}
            if outcome.result == Outcome.Result.PENDING:
                held = outcome.values.get(BEFORE, {})
            requests = {**failures[outcome.pk], **held.get("requests", {})}
            rows.append((json.dumps({BEFORE: {**held, "requests": requests}}), outcome.pk))
        Outcome.objects.settled().filter(pk__in=part).reopen()
        bulk.update(Outcome._meta.db_table, {"values": "jsonb"}, rows)


def select_retried(run: Run) -> OutcomeQuerySet:
    """Select the outcomes that had a result before a retry, and wait for it."""
    return run.outcomes.pending().filter(values__before__has_key="result")


def lock_requests(run: Run) -> None:
    """Lock the requests and outcomes that `restore` changes. Call this before locking the run."""
    Request.objects.wanted_by(run).unanswered().lock_leases()
    run.outcomes.lock_unsure()


def restore(run: Run) -> None:
    """Undo the retry of a run, as far as it has got no replies.

    Requests without an answer failed as before, unless another run waits for them. Outcomes are
    decided from the replies that came, otherwise as before. Runs in the caller's transaction, with
    the rows locked, once the run sends nothing more.
    """
    pending = run.outcomes.pending().filter(values__has_key=BEFORE).order_by("pk")
    before = {pk: values[BEFORE] for pk, values in pending.values_list("pk", "values")}
    failures = {
        digest: failure for one in before.values() for digest, failure in one["requests"].items()
    }
    others = Run.objects.going_on().exclude(pk=run.pk)
    # The calls of a supplement that is cancelled too are left to it.
    settled = [pk for pk, one in before.items() if "result" in one]
    mine = Request.objects.filter(Q(calls__outcome__among=settled) | Q(digest__in=list(failures)))
    unsent = dict(mine.still_open().wanted_by_none(others).values_list("pk", "digest"))
    open_now = Request.objects.filter(pk__among=list(unsent))
    spending.settle(open_now.lock_leases(), ())
    open_now.give_back()
    bulk.update(
        Request._meta.db_table,
        _REQUEST,
        [
            (
                "failed",
                held["cause"],
                held["message"],
                held["attempts"],
                json.dumps(held["tried"]),
                pk,
            )
            for pk, digest in unsent.items()
            if (held := failures.get(digest))
        ],
    )
    # A retry may have continued chains with calls that had not been made before.
    made = [pk for pk, digest in unsent.items() if digest not in failures]
    run.calls.filter(outcome__among=settled, request__among=made).delete()
    outcomes.settle(before)
    still = Outcome.objects.pending().filter(pk__among=settled).values_list("pk", flat=True)
    outcomes.store_decisions(
        [Outcome(pk=pk, **{name: before[pk][name] for name in _DECISION}) for pk in still]
    )
