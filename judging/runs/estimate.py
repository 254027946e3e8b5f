"""Estimate what a run would request and cost before it starts.

The cost of a call is estimated from stored replies of the same strategy and endpoint.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from annotation.models import Project, Revision
from judging.evaluators.prices import compute_cost
from judging.models import Endpoint, Reply, Request, Run, StrategyVersion
from judging.runs import lifecycle, pinning, spending, start_checks
from judging.runs.engine import calls
from judging.runs.lifecycle import RunConfig
from judging.strategies import Strategy, frames
from stats.estimates import Estimate
from stats.means import student_mean

# The number of calls in a pilot; an estimate needs at least this many replies.
PILOT_CALLS = 30
# The number of latest replies used for an estimate.
MAX_REPLIES = 1000


@dataclass(frozen=True)
class CallEstimate:
    """The usage of one call, estimated from `n` replies, with 95 % intervals: tokens in and out
    together, and the cost at the endpoint's current prices, in their currency.

    An estimate has no value if the replies do not report tokens, or a price is unknown.
    """

    n: int
    tokens: Estimate
    cost: Estimate

    @property
    def is_enough(self) -> bool:
        """True if there are enough replies for an estimate."""
        return self.n >= PILOT_CALLS


@dataclass(frozen=True)
class CostEstimate:
    """An estimated cost with its interval from a pilot."""

    value: Decimal
    low: Decimal
    high: Decimal


def estimate_call(strategy: StrategyVersion, endpoint: Endpoint) -> CallEstimate:
    """Estimate the usage of one call from the past calls of this strategy version to this
    endpoint."""
    asked = Reply.objects.filter(
        request__calls__run__strategy=strategy, request__calls__run__endpoint=endpoint
    )
    columns = (
        asked.order_by("-pk").values_list("pk", "tokens_in", "tokens_out").distinct()[:MAX_REPLIES]
    )
    replies = [(taken_in, taken_out) for _, taken_in, taken_out in columns]
    prices = endpoint.prices()
    costs = [compute_cost(prices, taken_in, taken_out) for taken_in, taken_out in replies]
    return CallEstimate(
        n=len(replies),
        tokens=student_mean([float(i + o) for i, o in replies if i is not None and o is not None]),
        cost=student_mean([float(one) for one in costs if one is not None]),
    )


def count_pilot_items(calls_an_item: int) -> int:
    """Return the number of items that a pilot needs for PILOT_CALLS calls."""
    return -(-PILOT_CALLS // max(1, calls_an_item))


def estimate_cost(pilot: CallEstimate, calls: int) -> CostEstimate | None:
    """Estimate the cost of `calls` calls from a pilot; None if the pilot is too small or has no
    known cost."""
    each = pilot.cost
    if not pilot.is_enough or each.value is None or each.low is None or each.high is None:
        return None
    bounds = (each.value, max(0.0, each.low), each.high)
    return CostEstimate(*(round(Decimal(one * calls), 6) for one in bounds))


BATCH = 200


@dataclass(frozen=True)
class RunEstimate:
    """What a run would request.

    The `calls` of all items need `requests` different requests; `stored` requests are already
    answered and cost nothing. `cost` is what the remaining requests may cost by the length of their
    prompts, None if prices are unknown. `by_pilot` is an estimate with an interval, None until
    there is a pilot; `pilot_items` items are enough for a pilot. The later steps of a chain are
    unknown until the earlier steps are answered, so each call of a later step counts as one
    request. `labelling` is the number of items still being labelled. `examples` are the keys of the
    items shown in every prompt.
    """

    items: int
    calls: int
    requests: int
    stored: int
    cost: Decimal | None
    pilot: CallEstimate
    by_pilot: CostEstimate | None
    pilot_items: int
    labelling: int = 0
    examples: tuple[str, ...] = ()

    @property
    def to_ask(self) -> int:
        """The number of requests that are still to be sent and paid for."""
        return self.requests - self.stored


def estimate_run(
    project: Project,
    *,
    strategy: StrategyVersion,
    endpoint: Endpoint,
    config: RunConfig,
) -> RunEstimate:
    """Estimate what `lifecycle.start_run` with the same arguments would request, by rendering every
    prompt.

    Raises `Refused` for an endpoint that this strategy cannot use, and if there are no items.
    """
    values = {**lifecycle.build_sample_counts(config.samples), "occasion": config.occasion}
    run = pinning.draft_run(project, strategy, endpoint, own=config.own, **values)
    asked = run.pinned_strategy()
    start_checks.check_endpoint(asked, endpoint, parameters=run.pinned["parameters"])
    # The cost hardly depends on which items the seed draws.
    drawn = config.draw(project, asked, config.seed or 0)
    pinning.pin_examples(run, drawn.examples)
    costs: dict[str, Decimal | None] = {}
    for batch in _batches(drawn.places):
        costs |= _estimate_costs(run, asked, batch, config.over)
    stored = sum(_count_answered(digests) for digests in _batches(list(costs)))
    made = len(drawn.places) * run.samples * len(frames.list_calls(asked))
    later = made * asked.last_step
    known = [cost for cost in costs.values() if cost is not None]
    to_ask = len(costs) - stored + later
    pilot = estimate_call(strategy, endpoint)
    return RunEstimate(
        items=len(drawn.items),
        calls=made + later,
        requests=len(costs) + later,
        stored=stored,
        cost=_mean(known) * to_ask if len(known) == len(costs) else None,
        pilot=pilot,
        by_pilot=estimate_cost(pilot, to_ask),
        pilot_items=count_pilot_items((made + later) // len(drawn.items)),
        labelling=start_checks.count_being_labelled(run, drawn.items),
        examples=tuple(row["key"] for row in drawn.examples),
    )


def _mean(costs: list[Decimal]) -> Decimal:
    return sum(costs, Decimal(0)) / max(1, len(costs))


def _estimate_costs(
    run: Run, strategy: Strategy, places: list[dict[str, Any]], over: Run | None
) -> dict[str, Decimal | None]:
    """Return the digests of the first requests of these places, each with its cost."""
    revisions = Revision.objects.only("texts").in_bulk([place["revision_id"] for place in places])
    outcomes = [pinning.build_outcome(run, place) for place in places]
    for outcome in outcomes:
        outcome.revision = revisions[outcome.revision_id]
    wanted = calls.build_first_calls(run, strategy, outcomes, base=over)
    return {
        digest: spending.estimate_request(run.endpoint, run, body)
        for _, digest, body in calls.render_calls(run, strategy, wanted)
    }


def _count_answered(digests: list[str]) -> int:
    return Request.objects.filter(digest__in=digests, state="answered").count()


def _batches(rows: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]
