"""What calls cost and take, by replies that are there of the same strategy and evaluator."""

from dataclasses import dataclass
from decimal import Decimal

from judging.evaluators.prices import compute_cost
from judging.models import Endpoint, Reply, StrategyVersion
from stats.estimates import Estimate
from stats.means import student_mean

# So many calls are asked first before an estimate rests on them.
PILOT_CALLS = 30
# Of more replies than this the last ones say enough.
MAX_REPLIES = 1000


@dataclass(frozen=True)
class CallEstimate:
    """What one call takes by `n` replies, with 95 % intervals: tokens in and out together, and
    the cost in the currency of the endpoint's prices as they are now.

    An estimate has no value where the replies do not say, or a price is unknown.
    """

    n: int
    tokens: Estimate
    cost: Estimate

    @property
    def is_enough(self) -> bool:
        """Whether an estimate may rest on it."""
        return self.n >= PILOT_CALLS


@dataclass(frozen=True)
class CostEstimate:
    """A cost with the interval that a pilot gives it."""

    value: Decimal
    low: Decimal
    high: Decimal


def estimate_call(strategy: StrategyVersion, endpoint: Endpoint) -> CallEstimate:
    """What calls of this strategy version to this endpoint took so far."""
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
    """How many items make a pilot of enough calls."""
    return -(-PILOT_CALLS // max(1, calls_an_item))


def estimate_cost(pilot: CallEstimate, calls: int) -> CostEstimate | None:
    """What so many calls cost by a pilot that is enough; None where it does not say."""
    each = pilot.cost
    if not pilot.is_enough or each.value is None or each.low is None or each.high is None:
        return None
    bounds = (each.value, max(0.0, each.low), each.high)
    return CostEstimate(*(round(Decimal(one * calls), 6) for one in bounds))
