"""What calls cost and take, by replies that are there of the same strategy and evaluator."""

from dataclasses import dataclass
from decimal import Decimal

from judging.models import Endpoint, Reply, StrategyVersion
from judging.providers.prices import cost
from stats.estimates import Estimate
from stats.means import student

# So many calls are asked first before an estimate rests on them.
WANTED = 30
# Of more replies than this the last ones say enough.
MOST = 1000


@dataclass(frozen=True)
class Pilot:
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
        return self.n >= WANTED


@dataclass(frozen=True)
class Amount:
    """A cost with the interval that a pilot gives it."""

    value: Decimal
    low: Decimal
    high: Decimal


def measure(strategy: StrategyVersion, endpoint: Endpoint) -> Pilot:
    """What calls of this strategy version to this endpoint took so far."""
    asked = Reply.objects.filter(
        request__calls__run__strategy=strategy, request__calls__run__endpoint=endpoint
    )
    columns = asked.order_by("-pk").values_list("pk", "tokens_in", "tokens_out").distinct()[:MOST]
    replies = [(taken_in, taken_out) for _, taken_in, taken_out in columns]
    prices = endpoint.prices()
    costs = [cost(prices, taken_in, taken_out) for taken_in, taken_out in replies]
    return Pilot(
        n=len(replies),
        tokens=student([float(i + o) for i, o in replies if i is not None and o is not None]),
        cost=student([float(one) for one in costs if one is not None]),
    )


def items_for(calls_an_item: int) -> int:
    """How many items make a pilot of enough calls."""
    return -(-WANTED // max(1, calls_an_item))


def amount(pilot: Pilot, calls: int) -> Amount | None:
    """What so many calls cost by a pilot that is enough; None where it does not say."""
    each = pilot.cost
    if not pilot.is_enough or each.value is None or each.low is None or each.high is None:
        return None
    bounds = (each.value, max(0.0, each.low), each.high)
    return Amount(*(round(Decimal(one * calls), 6) for one in bounds))
