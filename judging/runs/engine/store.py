"""Store the results of requests: replies, failed tries, and settled costs."""

import json
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import connection
from django.db.models import Q

from annotation.db import bulk, clock, sql, transactions
from judging.evaluators.prices import compute_cost
from judging.evaluators.providers import Answer
from judging.evaluators.providers.errors import (
    EvaluatorError,
    Halting,
    RateLimited,
    Rejected,
    TimedOut,
    Transient,
    format_status,
)
from judging.evaluators.providers.parameters import find_refused
from judging.evaluators.retries import POLICIES, compute_wait, is_given_up
from judging.models import Call, Endpoint, Outcome, Reply, Request, Run
from judging.runs import lifecycle, run_config, spending
from judging.runs.engine import calls, lease, rendering
from judging.runs.engine.lease import LeasedRequest
from judging.runs.engine.models import ANSWERED, RequestLease, RequestQuerySet
from judging.runs.transitions import list_pause_reasons
from judging.strategies.replies.causes import explain_cut, list_reply_causes
from judging.strategies.replies.outputs import strip_unstorable

# The number of results and outcomes to decide at a time. Large batches cost less for each outcome;
# replies wait about 40 ms for the write lock.
DECIDE_BATCH = 250
# If this many first requests of a run all fail, expect all others to fail: the order is random.
FUTILE_AFTER = 20
_UNUSABLE = "have no usable answer"
_ADVICE = (
    "If the model cannot answer in the form that the strategy asks for, clone this run with "
    "another endpoint or start one with another strategy."
)
_ADVICE_IF_CUT = (
    "Start another run with a higher max_tokens. Or resume this one, and once it has finished, ask "
    "its unusable items again with a higher max_tokens."
)
# Statements of each group of results.
_LOCK_UNANSWERED = sql.PreparedRows(
    lambda ids: Request.objects.filter(pk__among=ids).unanswered().with_lock()
)
_NOTE_ANSWERED = sql.PreparedUpdate(lambda ids: (Request.objects.filter(pk__among=ids), ANSWERED))
_PENDING_OUTCOMES = sql.PreparedRows(
    lambda ids: Outcome.objects.of_requests(ids).pending().values_list("pk")
)
_UNUSABLE_RUNS = sql.PreparedRows(
    lambda ids: (
        Outcome.objects.filter(pk__among=ids, cause__in=list_reply_causes())
        .values_list("run")
        .distinct()
    )
)
_REPLY = {
    "request_id": "bigint",
    "text": "text",
    "finish": "text",
    "model": "text",
    "tokens_in": "integer",
    "tokens_out": "integer",
    "tokens_cached": "integer",
    "tokens_reasoning": "integer",
    "thinking": "text",
    "bytes_sent": "integer",
    "cost": "numeric",
    "asked_at": "timestamptz",
    "seconds": "float8",
    "created_at": "timestamptz",
}


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of one leased request: an answer, an error, or neither if the request was not
    sent."""

    leased: LeasedRequest
    answer: Answer | None = None
    error: EvaluatorError | None = None


_AnsweredRequest = tuple[LeasedRequest, Answer]


def store_results(endpoint: Endpoint, holder: str, results: Sequence[CallResult]) -> None:
    """Store the results of requests, in one transaction.

    Idempotent, so it is safe to try again after a lost connection. If a lease has expired
    meanwhile, an answer still counts unless another worker's answer came first. A failure is
    ignored, since the request now belongs to another worker.
    """
    now = clock.now()
    ids = [result.leased.request_id for result in results]
    with transactions.transact():
        rows = {row[0]: RequestLease(*row) for row in _LOCK_UNANSWERED.fetch(ids=ids)}
        kept = [result for result in results if _is_current(result, rows, holder)]
        answered = [(one.leased, one.answer) for one in kept if one.answer]
        prices = endpoint.prices()
        paid = [compute_cost(prices, answer) for _, answer in answered]
        doubtful = _lock_doubtful_runs(kept, rows)
        booked = _settle_money(rows, kept, zip(answered, paid, strict=True))
        _store_replies(endpoint, answered, paid, now)
        _store_failures([one for one in kept if not one.answer], now)
        _note_pause(endpoint, kept, now)
        _note_remaining(endpoint, kept, now)
        for run in doubtful:
            # Prefer the reason about a refused parameter, since it says what to change; the other
            # reason is more general.
            if reason := _explain_refused(run, kept) or _explain_futile(run, endpoint, kept):
                lease.pause_run(run, reason)
        # Otherwise requests that are leased but not yet sent would all be sent.
        for run in spending.find_overspent(booked):
            lease.pause_run(run, spending.explain_overspent(run))


def decide_outcomes(results: Sequence[CallResult]) -> int:
    """Decide the outcomes that are complete with these results; return the number of decided
    outcomes. Runs whose outcomes cannot be decided are paused."""
    ids = [result.leased.request_id for result in results]
    waiting = [pk for (pk,) in _PENDING_OUTCOMES.fetch(ids=ids)]
    decided = sum(
        lifecycle.settle_or_pause(waiting[at : at + DECIDE_BATCH])
        for at in range(0, len(waiting), DECIDE_BATCH)
    )
    _pause_unusable_runs(waiting)
    return decided


def _pause_unusable_runs(decided: Sequence[int]) -> None:
    """Pause the runs of these outcomes that have no usable answer for any item although enough
    items were answered. A run is paused only once for this reason: whoever resumes the run has seen
    the reason."""
    if not decided:
        return
    unusable = [pk for (pk,) in _UNUSABLE_RUNS.fetch(ids=decided)]
    for run in Run.objects.running().filter(pk__in=unusable) if unusable else ():
        settled = run.outcomes.settled()
        if settled.exclude(result=Outcome.Result.MISSING).exists():
            continue
        # Count one outcome per item, even if a strategy has several axes.
        useless = settled.main().filter(cause__in=list_reply_causes())
        causes = Counter(useless.values_list("cause", flat=True))
        n, is_over = causes.total(), not Request.objects.wanted_by(run).still_open().exists()
        seen = any(_UNUSABLE in reason for reason in list_pause_reasons(run))
        if n < FUTILE_AFTER or is_over or seen:
            continue
        said = ", ".join(f"{k} {cause.replace('_', ' ')}" for cause, k in causes.most_common())
        cut = _explain_cut(run) if "truncated" in causes else ""
        advice = _ADVICE_IF_CUT if 2 * causes["truncated"] > n else _ADVICE
        lease.pause_run(
            run,
            f"The first {n} items {_UNUSABLE}: {said}. {cut}Read their replies below. {advice} "
            "Resume continues as before.",
        )


def _explain_cut(run: Run) -> str:
    """Return why the run's latest reply without a text was cut off, with a space after it; "" if
    there is no such reply."""
    cut = Reply.objects.filter(request__calls__run=run, finish="length", text="")
    latest = cut.order_by("-pk").first()
    return f"{explain_cut(latest)} " if latest else ""


def _is_current(result: CallResult, rows: Mapping[int, RequestLease], holder: str) -> bool:
    row = rows.get(result.leased.request_id)
    if row is None:
        return False
    return bool(result.answer) or (row.state == "leased" and row.leased_by == holder)


def _settle_money(
    rows: Mapping[int, RequestLease],
    kept: Sequence[CallResult],
    replies: Iterable[tuple[_AnsweredRequest, Decimal | None]],
) -> set[int]:
    """Replace reserved amounts by actual costs; an unknown cost counts as the reserved amount, also
    that of a try without a reply that the provider may have answered. Returns the ids of the runs
    that paid."""
    paid = [
        (leased.run_id, rows[leased.request_id].reserved if price is None else price)
        for (leased, _), price in replies
    ]
    lost = [one.leased for one in kept if one.error and one.error.may_cost]
    paid += [(leased.run_id, rows[leased.request_id].reserved) for leased in lost]
    if lost:
        Request.objects.filter(pk__among=[leased.request_id for leased in lost]).charge()
    spending.settle((rows[one.leased.request_id] for one in kept), paid)
    return {run_id for run_id, amount in paid if amount}


def _store_replies(
    endpoint: Endpoint,
    replies: Sequence[_AnsweredRequest],
    paid: Sequence[Decimal | None],
    now: datetime,
) -> None:
    if not replies:
        return
    # Use plain column values, since model objects took five times as long.
    as_time = connection.ops.adapt_datetimefield_value
    stored = as_time(now)
    rows = [
        (
            leased.request_id,
            strip_unstorable(answer.text),
            answer.finish,
            strip_unstorable(answer.model)[:200],
            _valid_count(answer.tokens_in),
            _valid_count(answer.tokens_out),
            _valid_count(answer.tokens_cached),
            _valid_count(answer.tokens_reasoning),
            strip_unstorable(answer.thinking) or None,
            len(leased.body),
            price,
            as_time(answer.started),
            answer.seconds,
            stored,
        )
        for (leased, answer), price in zip(replies, paid, strict=True)
    ]
    bulk.insert(Reply._meta.db_table, _REPLY, rows)
    ids = [leased.request_id for leased, _ in replies]
    _NOTE_ANSWERED.run(ids=ids)
    if endpoint.is_evaluator():
        calls.note_first_replies(ids, now)


def _valid_count(tokens: int | None) -> int | None:
    """Return the count if it fits the column. A larger number cannot be a token count and becomes
    None."""
    return tokens if tokens is None or tokens < 2**31 else None


def _store_failures(failures: Sequence[CallResult], now: datetime) -> None:
    """Store the failures: failed requests wait for their next try or fail for good; requests
    without an error wait again."""
    ids = [failure.leased.request_id for failure in failures]
    if ids:
        Request.objects.filter(pk__among=ids).give_back()
    for failure in failures:
        if failure.error is not None and not isinstance(failure.error, Halting):
            _count_try(failure.leased, failure.error, now)


def _note_pause(endpoint: Endpoint, kept: Sequence[CallResult], now: datetime) -> None:
    """Store the longest pause that the provider asked for. It applies to all workers and is shown
    on pages."""
    waits = [one.error.retry_after or 0.0 for one in kept if one.error]
    if longest := max(waits, default=0.0):
        Endpoint.objects.filter(pk=endpoint.pk).pause(now + timedelta(seconds=longest))


def _note_remaining(endpoint: Endpoint, kept: Sequence[CallResult], now: datetime) -> None:
    """Store the remaining limits from the latest response headers, for the endpoint's page."""
    said = (one.answer.remaining for one in reversed(kept) if one.answer)
    endpoint.note_remaining(next(filter(None, said), {}), now)


def _count_try(leased: LeasedRequest, error: EvaluatorError, now: datetime) -> None:
    failed = leased.tried.get(error.cause, 0) + 1
    wait = compute_wait(failed, error, random.Random())
    said = {
        "attempts": leased.attempts + 1,
        "tried": {**leased.tried, error.cause: failed},
        "message": strip_unstorable(str(error)),
    }
    request = Request.objects.filter(pk=leased.request_id)
    if wait is None:
        request.update(**said, state="failed", cause=error.cause)
    else:
        request.update(**said, next_try=now + timedelta(seconds=wait))


def _lock_doubtful_runs(kept: Sequence[CallResult], rows: Mapping[int, RequestLease]) -> list[Run]:
    """Lock and return the running runs that want a request which was given up or timed out just
    now.

    The lock is needed because two workers that store at the same time could both miss the request
    that reaches the limit. All other runs with costs to book are locked too, always in the same
    order.
    """
    failed = [
        one.leased.request_id
        for one in kept
        if isinstance(one.error, TimedOut) or _is_given_up(one)
    ]
    if not failed:
        return []
    wanting = Call.objects.filter(request__among=failed).values("run")
    booked = {one.leased.run_id for one in kept} | {row.leased_for for row in rows.values()}
    found = Run.objects.filter(Q(pk__in=wanting) | Q(pk__in=booked - {None})).order_by("pk")
    wanted_by = set(wanting.values_list("run", flat=True))
    locked = list(found.select_for_update(no_key=True))
    return [run for run in locked if run.state == Run.State.RUNNING and run.pk in wanted_by]


def _is_given_up(result: CallResult) -> bool:
    error, tried = result.error, result.leased.tried
    if error is None or isinstance(error, Halting):
        return False
    return is_given_up(tried.get(error.cause, 0) + 1, error)


def _explain_refused(run: Run, kept: Sequence[CallResult]) -> str:
    """Return a pause reason if a provider's message refuses a parameter that every request of the
    run or of its last supplement sends, otherwise "". After a resume, a run is not paused again for
    the same parameter."""
    supplement = len(run.pinned.get(run_config.SUPPLEMENTS_KEY, ()))
    sent = rendering.with_supplement(run, supplement).sends()
    words = [str(one.error) for one in kept if isinstance(one.error, Rejected)]
    said = next((said for said in words if find_refused(said, sent)), "")
    name = find_refused(said, sent)
    if not name or any(find_refused(reason, [name]) for reason in list_pause_reasons(run)):
        return ""
    value = f"{name} = {json.dumps(sent[name])}"
    if supplement:
        return (
            f"{said} Every request of supplement {supplement} has {value}. Cancel the supplement: "
            "earlier replies are kept. Then ask again with other parameters."
        )
    return f"{said} Every request of this run has {value}."


def _explain_futile(run: Run, endpoint: Endpoint, kept: Sequence[CallResult]) -> str:
    """Return a pause reason if none of the run's requests was answered and all failed in the same
    way, otherwise ""."""
    if run.was_answered():
        return ""
    wanted = Request.objects.wanted_by(run)
    return (
        _explain_all_rejected(run, wanted, kept)
        or _explain_all_given_up(run, wanted, endpoint, kept)
        or _explain_all_timed_out(run, wanted, endpoint, kept)
    )


def _explain_all_rejected(run: Run, wanted: RequestQuerySet, kept: Sequence[CallResult]) -> str:
    """Return a pause reason if the first requests were all rejected with the same status, otherwise
    ""."""
    errors = {one.leased.request_id: one.error for one in kept if isinstance(one.error, Rejected)}
    last = next(reversed(errors.values()), None)
    if last is None or last.status is None:
        return ""
    start = format_status(last.status)
    n = _count_first_failed(wanted, errors, Q(cause=last.cause, message__startswith=start))
    if not n:
        return ""
    return (
        f"{_describe_first(n, 'request', n < FUTILE_AFTER)} rejected. {str(last).rstrip('.')}. "
        f"Check the endpoint's address, model, key and parameters. {_remedy(run)}, or retry the "
        "failed requests once the endpoint is corrected. Resume continues without them."
    )


def _explain_all_given_up(
    run: Run, wanted: RequestQuerySet, endpoint: Endpoint, kept: Sequence[CallResult]
) -> str:
    """Return a pause reason if the first requests were all given up after all their tries,
    otherwise "". Such requests fail because the provider accepts no more calls, its server cannot
    be reached, or its replies are broken."""
    errors = {
        one.leased.request_id: one.error
        for one in kept
        if isinstance(one.error, Transient) and _is_given_up(one)
    }
    last = next((e for e in reversed(errors.values()) if not isinstance(e, TimedOut)), None)
    if last is None:
        return ""
    n = _count_first_failed(wanted, errors, ~Q(cause=Rejected.cause))
    if not n:
        return ""
    check = "Check the endpoint's address and whether its server works."
    if isinstance(last, RateLimited):
        per_minute = "no limit" if endpoint.per_minute is None else endpoint.per_minute
        check = (
            f"Check your quota at the provider, and lower the calls in flight "
            f"({endpoint.in_flight}) or per minute ({per_minute}) of endpoint {endpoint.name}."
        )
    return (
        f"{_describe_first(n, 'request', n < FUTILE_AFTER)} given up after "
        f"{POLICIES[last.cause].attempts} tries each. {str(last).rstrip('.')}. {check} "
        f"{_remedy(run)}, or retry the failed requests once the endpoint answers. Resume continues "
        "without them."
    )


def _count_first_failed(wanted: RequestQuerySet, now: Collection[int], alike: Q) -> int:
    """Return how many requests failed if all of them failed `alike`, and the failures `now`
    complete the first FUTILE_AFTER requests (or all requests if there are fewer); otherwise 0. So a
    run is paused only once for this reason: whoever resumes the run has seen the reason."""
    failed = wanted.filter(state="failed")
    n, before = failed.count(), failed.exclude(pk__among=list(now)).count()
    is_first = before < FUTILE_AFTER <= n or (n < FUTILE_AFTER and not wanted.still_open().exists())
    return n if is_first and failed.filter(alike).count() == n else 0


def _remedy(run: Run) -> str:
    if lifecycle.is_unanswered(run):
        return "Move this run to a corrected endpoint"
    return "Clone this run with another endpoint"


def _explain_all_timed_out(
    run: Run, wanted: RequestQuerySet, endpoint: Endpoint, kept: Sequence[CallResult]
) -> str:
    """Return a pause reason if a full set of parallel calls timed out, that is as many requests as
    may be in flight, or all of them if there are fewer; otherwise "". The reason is given once for
    each pair of timeout and calls in flight: whoever resumes the run with the same numbers has seen
    it."""
    if not any(isinstance(one.error, TimedOut) for one in kept):
        return ""
    now = Endpoint.objects.get(pk=endpoint.pk)
    limits = (now.timeout, now.in_flight)
    if limits != (endpoint.timeout, endpoint.in_flight):
        return ""  # The limits were changed during these calls.
    slow = wanted.filter(tried__has_key=TimedOut.cause)
    n, others = slow.count(), wanted.exclude(tried__has_key=TimedOut.cause)
    if others.filter(attempts__gt=0).exists():
        return ""
    all_of_them = not others.still_open().exists()
    if n < endpoint.in_flight and not all_of_them:
        return ""
    own = run.pinned.get(run_config.TIMEOUT_KEY)
    numbers = (
        f"At endpoint {now.name}, raise the timeout ({now.timeout} s) or lower the calls in flight "
        f"({now.in_flight}), then resume."
    )
    if own:
        numbers = (
            f"At endpoint {now.name}, lower the calls in flight ({now.in_flight}), then resume. Or "
            f"resume, and once the run is finished ask again with more than {own} s per call."
        )
    if any(numbers in reason for reason in list_pause_reasons(run)):
        return ""
    first = _describe_first(n, "call", all_of_them)
    return f"{first} stopped after {own or now.timeout} s without a reply. {numbers}"


def _describe_first(n: int, what: str, every: bool) -> str:
    if n == 1:
        return f"The {'only' if every else 'first'} {what} was"
    return f"All {n} {what}s were" if every else f"The first {n} {what}s were all"
