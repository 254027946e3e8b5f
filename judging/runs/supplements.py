"""Ask the items of a finished run whose replies are unusable again, with other parameters.

A supplement belongs to its run: it adds calls to the outcomes that are missing, and the run pins
the parameters that it changed. Prompts, model and items stay. An outcome is decided by the last
supplement with a usable reply, otherwise by the original replies, so no item is counted twice. The
original calls and replies stay as they are.

Calls may also be given more time than the endpoint allows. With more time alone, the requests that
failed are sent again as they are, like a retry, and the run gets no supplement.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.db import transactions
from annotation.models import Membership
from judging.errors import Refused
from judging.evaluators.providers.parameters import merge_parameters
from judging.models import Outcome, Request, Run
from judging.runs import (
    amounts,
    derived,
    estimate,
    former_results,
    lifecycle,
    pinning,
    run_config,
    spending,
    start_checks,
)
from judging.runs.engine import calls, outcomes, rendering
from judging.runs.engine.calls import PlannedCall
from judging.runs.estimate import RenderedRequests, RequestsEstimate, Shortage
from judging.runs.models import OutcomeQuerySet
from judging.runs.transitions import change_state, was_finished
from judging.strategies.replies.causes import list_causes_to_ask_again

BATCH = 200
# Later supplements rarely give a reply that earlier ones did not give.
MAX_SUPPLEMENTS = 20
# In seconds; more does not fit the column of an endpoint's own timeout.
MAX_TIMEOUT = 32_767


@dataclass(frozen=True)
class SupplementEstimate(RequestsEstimate):
    """The number of items that a supplement would ask again, its calls, and what these would
    request; `shortages` are the limits that its price may exceed."""

    items: int
    calls: int
    shortages: Sequence[Shortage]


@dataclass(frozen=True)
class Supplement:
    """A supplement of a run: its number, the parameters that it changed, the number of outcomes
    asked again, and of those that have a usable reply now; `stopped` if it was cancelled."""

    number: int
    parameters: Mapping[str, Any]
    asked: int
    usable: int
    stopped: bool


def select_unusable(run: Run) -> OutcomeQuerySet:
    """Select the outcomes for which it makes sense to ask again."""
    missing = run.outcomes.filter(result=Outcome.Result.MISSING)
    return missing.filter(cause__in=list_causes_to_ask_again(), calls__isnull=False).distinct()


def can_supplement(run: Run) -> bool:
    """True if the run is of a kind that can be supplemented, and finished."""
    is_asked = run.kind == Run.Kind.ASKED and not run.generates
    return is_asked and run.state == Run.State.FINISHED


def list_supplements(run: Run) -> list[Supplement]:
    """List the supplements of a run, in order."""
    found = []
    for number, pinned in enumerate(run.pinned.get(run_config.SUPPLEMENTS_KEY, ()), 1):
        asked = run.outcomes.filter(calls__supplement=number).distinct()
        later = asked.filter(calls__supplement__gt=number).values("pk")
        unusable = [Outcome.Result.MISSING, Outcome.Result.PENDING]
        usable = asked.exclude(pk__in=later).exclude(result__in=unusable)
        stopped = bool(pinned.get("stopped"))
        found.append(
            Supplement(number, pinned["parameters"], asked.count(), usable.count(), stopped)
        )
    return found


def is_asking_again(run: Run) -> bool:
    """True while a supplement of the run asks; `cancel` then cancels only the supplement."""
    number = len(run.pinned.get(run_config.SUPPLEMENTS_KEY, ()))
    pending = run.outcomes.pending().exclude(pk__in=former_results.select_retried(run).values("pk"))
    return number > 0 and run.calls.filter(supplement=number, outcome__in=pending).exists()


def get_cancellable(run: Run) -> str:
    """Return what `cancel` would cancel: the "supplement" or the "retry" of a run that was finished
    before, or the "run" itself."""
    if is_asking_again(run):
        return "supplement"
    is_retrying = was_finished(run) and former_results.select_retried(run).exists()
    return "retry" if is_retrying else "run"


def estimate_supplement(
    run: Run, parameters: Mapping[str, Any], timeout: int | None = None
) -> SupplementEstimate:
    """Estimate a supplement. Raises `Refused` like `ask_again`."""
    tried = _check(run, parameters, timeout)
    if not parameters:
        return _estimate_retry(run)
    number = len(tried.pinned[run_config.SUPPLEMENTS_KEY])
    sender, strategy = rendering.with_supplement(tried, number), run.pinned_strategy()
    rendered = RenderedRequests()
    made = 0
    for batch in _batches(run):
        planned = calls.build_first_calls(run, strategy, batch, supplement=number)
        for _, digest, body in calls.render_calls(tried, strategy, planned):
            price = spending.estimate_request(run.endpoint, sender, body)
            rendered.add(bytes.fromhex(digest), body, price)
            made += 1
    later = made * strategy.last_step
    stored = len(estimate.find_answered(rendered.digests))
    requests = estimate.estimate_requests(sender, rendered, stored, later)
    return _complete_estimate(run, requests, select_unusable(run).count(), made + later)


def ask_again(
    run: Run,
    member: Membership | None,
    parameters: Mapping[str, Any],
    timeout: int | None = None,
) -> int:
    """Ask the unusable items of a finished run again with these parameters changed; return their
    number. A `timeout` holds for all calls of the run from now on, in seconds; without parameters,
    only the failed requests are sent again.

    Raises `Refused` for a run that is not finished, as when somebody else has just asked, for
    parameters that change nothing, and if no item is left to ask.
    """
    if not parameters:
        _check(run, parameters, timeout)
        items = _select_failed(run).count()
        lifecycle.retry_failed(run, member, timeout=timeout)
        return items
    with transactions.transact():
        lifecycle.lock_unsure(run)
        # The lock lets one of two people through; the other sees a running run.
        held = Run.objects.select_for_update(no_key=True, of=("self",)).get(pk=run.pk)
        held.pinned = _check(held, parameters, timeout).pinned
        ids = list(select_unusable(held).order_by("pk").values_list("pk", flat=True))
        supplements = held.pinned[run_config.SUPPLEMENTS_KEY]
        number = len(supplements)
        said: dict[str, Any] = {"supplement": number, **supplements[-1], "items": len(ids)}
        if timeout is not None:
            held.pinned[run_config.TIMEOUT_KEY] = said["timeout"] = timeout
        change_state(held, {Run.State.FINISHED}, Run.State.RUNNING, member, **said)
        held.digest = pinning.compute_digest(held)
        held.save(update_fields=["pinned", "digest"])
        # Within the transaction: a worker that saw a run without open calls would finish it.
        strategy = held.pinned_strategy()
        for batch in _batches(held):
            planned: Sequence[PlannedCall] = calls.build_first_calls(
                held, strategy, batch, supplement=number
            )
            Outcome.objects.filter(pk__in=[one.pk for one in batch]).reopen()
            calls.create_calls(held, strategy, planned)
    run.refresh_from_db()
    lifecycle.finish_if_done(run)
    return len(ids)


def _select_failed(run: Run) -> OutcomeQuerySet:
    """Select the outcomes that are missing because a request failed."""
    missing = run.outcomes.filter(result=Outcome.Result.MISSING)
    return missing.filter(calls__request__state="failed").distinct()


def _estimate_retry(run: Run) -> SupplementEstimate:
    failed = Request.objects.wanted_by(run).filter(state="failed").order_by("pk")
    digests = dict(failed.values_list("pk", "digest"))
    ids = list(digests)
    rendered = RenderedRequests()
    for begin in range(0, len(ids), BATCH):
        batch = ids[begin : begin + BATCH]
        numbers = rendering.load_supplements(run, batch)
        for pk, body in rendering.render_bodies(run, batch).items():
            sender = rendering.with_supplement(run, numbers[pk])
            price = spending.estimate_request(run.endpoint, sender, body)
            rendered.add(digests[pk].encode(), body, price)
    requests = estimate.estimate_requests(run, rendered, stored=0)
    return _complete_estimate(run, requests, _select_failed(run).count(), len(ids))


def _complete_estimate(
    run: Run, requests: RequestsEstimate, items: int, made: int
) -> SupplementEstimate:
    left = spending.compute_left(run)
    named = f"The {amounts.format_amount(left or spending.ZERO)} left of the run's cap"
    shortages = estimate.find_shortages(run.project, requests, named, left)
    return SupplementEstimate(**vars(requests), items=items, calls=made, shortages=shortages)


def _check(run: Run, parameters: Mapping[str, Any], timeout: int | None) -> Run:
    """Return an unsaved copy of the run that pins one more supplement, or the run itself if only
    its timeout changes. Raises `Refused`."""
    if run.kind != Run.Kind.ASKED or run.generates:
        raise Refused(
            f"Run {run.number} asked no evaluator for a judgement, so its items cannot be asked "
            "again. Start a new run instead."
        )
    if run.state != Run.State.FINISHED:
        raise Refused(
            f"Run {run.number} is {run.state}. Only the items of a finished run can be asked again."
        )
    if timeout is not None and not 1 <= timeout <= MAX_TIMEOUT:
        raise Refused(f"Give calls 1 to {MAX_TIMEOUT:,} seconds.")
    tried = run
    if parameters:
        tried = _check_parameters(run, parameters)
    elif timeout is None:
        raise Refused("Change at least one parameter, or the same replies would come again.")
    elif not _select_failed(run).exists():
        raise Refused(
            f"No request of run {run.number} failed, so more time alone changes nothing. Change a "
            "parameter too."
        )
    if run.cap is not None:
        start_checks.check_prices(run.endpoint)
    start_checks.check_budget(run.project, run.endpoint)
    return tried


def _check_parameters(run: Run, parameters: Mapping[str, Any]) -> Run:
    pinning.check_parameters(parameters)
    before = run.pinned.get(run_config.SUPPLEMENTS_KEY, [])
    if len(before) >= MAX_SUPPLEMENTS:
        raise Refused(f"Run {run.number} already has {MAX_SUPPLEMENTS} supplements. Clone it.")
    tried = _with_pins(run, parameters)
    sender = rendering.with_supplement(tried, len(before) + 1)
    start_checks.check_bodies(run.pinned_strategy(), run.endpoint, sender.pinned)
    # What is sent counts: a default that is set to itself changes nothing.
    asked = [0, *(number for number, one in enumerate(before, 1) if not one.get("stopped"))]
    if sender.sends() in [rendering.with_supplement(run, number).sends() for number in asked]:
        raise Refused("These items were already asked with these parameters. Change one of them.")
    if not select_unusable(run).exists():
        raise Refused(f"Run {run.number} has no item whose reply is unusable.")
    return tried


def _with_pins(run: Run, parameters: Mapping[str, Any]) -> Run:
    tried = Run.objects.select_related("strategy", "endpoint", "project").get(pk=run.pk)
    before = run.pinned.get(run_config.SUPPLEMENTS_KEY, [])
    # Under the names that the run uses, so that a limit replaces the run's own limit.
    changed = merge_parameters(run.pinned["provider"], run.pinned["model"], (), parameters)
    more = [*before, {"parameters": changed}]
    tried.pinned = {**run.pinned, run_config.SUPPLEMENTS_KEY: more}
    return tried


def _batches(run: Run) -> Iterator[list[Outcome]]:
    last = 0
    found = select_unusable(run).select_related("item", "revision").order_by("pk")
    while batch := list(found.filter(pk__gt=last)[:BATCH]):
        last = batch[-1].pk
        yield batch


def cancel(run: Run, member: Membership | None) -> None:
    """Cancel a run, or only its retry, as `lifecycle.cancel` does. While a supplement asks again,
    cancel only the supplement: what came is kept, items without a new reply keep their original
    one, and the run is finished as before.

    Calls of the supplement that are in flight end first, since they are paid for; until then the
    run is running.
    """
    with transactions.transact():
        if Run.objects.filter(pk=run.pk, pinned__has_key=run_config.SUPPLEMENTS_KEY).exists():
            lifecycle.lock_unsure(run)
        lifecycle.cancel(run, member)
        # A supplement may have started since the run was loaded.
        run.refresh_from_db()
        number = len(run.pinned.get(run_config.SUPPLEMENTS_KEY, ()))
        if run.state != Run.State.CANCELLED or not number:
            return
        stopped: dict[str, Any] = {}
        if is_asking_again(run):
            stopped = {"stopped_supplement": number}
            *before, last = run.pinned[run_config.SUPPLEMENTS_KEY]
            run.pinned[run_config.SUPPLEMENTS_KEY] = [*before, {**last, "stopped": True}]
            run.digest = pinning.compute_digest(run)
            run.save(update_fields=["pinned", "digest"])
            outcomes.settle_stopped(run)
        # Also if the last reply has just come, and no worker has finished the run yet.
        state, own = Run.State.FINISHED, run.calls.exclude(supplement=number)
        if not run.outcomes.pending().exists():
            derived.refresh_dependants(run)
        elif own.filter(request__in=Request.objects.still_open()).exists():
            # An earlier version sent these requests again, and did not keep how they had failed.
            return
        else:
            state = Run.State.RUNNING
        change_state(run, {Run.State.CANCELLED}, state, member, **stopped)
