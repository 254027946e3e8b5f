"""What came of requests that were asked: replies on record, failures counted, money settled."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import connection

from annotation import bulk, writing
from judging import clock
from judging.calling import calls, outcomes
from judging.engine.leasing import Leased
from judging.models import Endpoint, Outcome, Reply, Request
from judging.providers import Answer
from judging.providers.errors import EvaluatorError, Halting
from judging.providers.prices import cost
from judging.providers.retries import next_try
from judging.querysets import Held
from judging.replies.outputs import storable
from judging.running import spending

# Results, and outcomes, that are decided at a time: many at once cost less each, and replies wait
# for the write lock some 40 ms.
PART = 250
_REPLY = {
    "request_id": "bigint",
    "text": "text",
    "finish": "text",
    "model": "text",
    "tokens_in": "integer",
    "tokens_out": "integer",
    "cost": "numeric",
    "asked_at": "timestamptz",
    "seconds": "float8",
    "created_at": "timestamptz",
}


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one leased request: an answer, an error, or neither (it was not asked)."""

    leased: Leased
    answer: Answer | None = None
    error: EvaluatorError | None = None


_Answered = tuple[Leased, Answer]


def store(endpoint: Endpoint, holder: str, results: Sequence[Result]) -> None:
    """Put what came of requests on record, in one transaction.

    Storing the same results twice changes nothing, so it is safe to try again after a connection
    broke. A lease may have run out meanwhile: an answer then counts all the same unless another
    worker's came first, a failure is the business of whoever has the request now.
    """
    now = clock.now()
    ids = [result.leased.request_id for result in results]
    with writing.transact():
        unanswered = Request.objects.filter(pk__among=ids).unanswered()
        rows = {row.pk: row for row in unanswered.held()}
        kept = [result for result in results if _counts(result, rows, holder)]
        answered = [(one.leased, one.answer) for one in kept if one.answer]
        prices = endpoint.prices()
        paid = [cost(prices, answer.tokens_in, answer.tokens_out) for _, answer in answered]
        _settle_money(rows, kept, zip(answered, paid, strict=True))
        _store_replies(endpoint, answered, paid, now)
        _store_failures([one for one in kept if not one.answer], now)
        _note_pause(endpoint, kept, now)
        _note_remaining(endpoint, kept, now)


def decide(results: Sequence[Result]) -> int:
    """Decide the outcomes that these results were the last to be waited for; how many."""
    ids = [result.leased.request_id for result in results]
    waiting = list(Outcome.objects.of_requests(ids).pending().values_list("pk", flat=True))
    return sum(outcomes.settle(waiting[at : at + PART]) for at in range(0, len(waiting), PART))


def _counts(result: Result, rows: Mapping[int, Held], holder: str) -> bool:
    row = rows.get(result.leased.request_id)
    if row is None:
        return False
    return bool(result.answer) or (row.state == "leased" and row.leased_by == holder)


def _settle_money(
    rows: Mapping[int, Held],
    kept: Sequence[Result],
    replies: Iterable[tuple[_Answered, Decimal | None]],
) -> None:
    """What was reserved becomes what was spent; an unknown cost counts as what was reserved."""
    paid = [
        (leased.run_id, rows[leased.request_id].reserved if price is None else price)
        for (leased, _), price in replies
    ]
    spending.settle((rows[one.leased.request_id] for one in kept), paid)


def _store_replies(
    endpoint: Endpoint,
    replies: Sequence[_Answered],
    paid: Sequence[Decimal | None],
    now: datetime,
) -> None:
    if not replies:
        return
    # As the columns take them: objects of the model took five times as long.
    as_time = connection.ops.adapt_datetimefield_value
    stored = as_time(now)
    rows = [
        (
            leased.request_id,
            storable(answer.text),
            answer.finish,
            storable(answer.model)[:200],
            _countable(answer.tokens_in),
            _countable(answer.tokens_out),
            price,
            as_time(answer.started),
            answer.seconds,
            stored,
        )
        for (leased, answer), price in zip(replies, paid, strict=True)
    ]
    bulk.insert(Reply._meta.db_table, _REPLY, rows)
    ids = [leased.request_id for leased, _ in replies]
    Request.objects.filter(pk__among=ids).note_answered()
    if endpoint.is_evaluator():
        calls.note_first_replies(ids, now)


def _countable(tokens: int | None) -> int | None:
    """A number that a column holds; a provider that reports more does not count tokens."""
    return tokens if tokens is None or tokens < 2**31 else None


def _store_failures(failures: Sequence[Result], now: datetime) -> None:
    """The requests wait again, those with an error for their next try, or have failed for good."""
    ids = [failure.leased.request_id for failure in failures]
    if ids:
        Request.objects.filter(pk__among=ids).give_back()
    for failure in failures:
        if failure.error is not None and not isinstance(failure.error, Halting):
            _count_try(failure.leased, failure.error, now)


def _note_pause(endpoint: Endpoint, kept: Sequence[Result], now: datetime) -> None:
    """The wait that the provider asked for holds for every worker, and the page can say it."""
    waits = [one.error.retry_after or 0.0 for one in kept if one.error]
    if longest := max(waits, default=0.0):
        Endpoint.objects.filter(pk=endpoint.pk).pause(now + timedelta(seconds=longest))


def _note_remaining(endpoint: Endpoint, kept: Sequence[Result], now: datetime) -> None:
    """What the last answers' headers say is left, for the endpoint's page."""
    said = (one.answer.remaining for one in reversed(kept) if one.answer)
    endpoint.note_remaining(next(filter(None, said), {}), now)


def _count_try(leased: Leased, error: EvaluatorError, now: datetime) -> None:
    failed = leased.tried.get(error.cause, 0) + 1
    wait = next_try(failed, error, random.Random())
    said = {
        "attempts": leased.attempts + 1,
        "tried": {**leased.tried, error.cause: failed},
        "message": storable(str(error)),
    }
    request = Request.objects.filter(pk=leased.request_id)
    if wait is None:
        request.update(**said, state="failed", cause=error.cause)
    else:
        request.update(**said, next_try=now + timedelta(seconds=wait))
