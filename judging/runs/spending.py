"""The cost cap: reserve an amount before a request is sent, and settle it when the request has
ended.

The reserved amount is stored on the request, and run and project store the sums. So even if a
worker is killed, a request that returns to the queue frees exactly the amount reserved for it.
`reserve` and `settle` must run inside the caller's transaction. They change runs before projects,
so that two transactions do not deadlock.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Round

from judging.evaluators.prices import estimate_cost
from judging.models import Budget, Endpoint, Request, Run
from judging.runs.amounts import format_amount, format_estimate, round_up
from judging.runs.engine.models import RequestLease

ZERO = Decimal(0)
# Prices have six decimals and are per million tokens, so no cost needs more decimals.
DECIMAL_PLACES = 12
_SMALLEST = Decimal(1).scaleb(-DECIMAL_PLACES)


# Names the budget in the reason of a run that it paused.
_BUDGET = "the project's budget"


@dataclass(frozen=True, slots=True)
class Reservation:
    """The result of a reservation: the first `count` requests can be paid for.

    `stuck` is a message that says why not even one request could be paid for. It is "" while calls
    in flight may still cost less than the amounts reserved for them.
    """

    count: int
    stuck: str = ""


def estimate_request(endpoint: Endpoint, run: Run, body: bytes) -> Decimal | None:
    """Estimate the cost of a request, rounded up to the column's precision; None if unknown."""
    price = estimate_cost(endpoint.prices(), body, run.pinned["parameters"])
    return None if price is None else price.quantize(_SMALLEST, ROUND_UP)


def compute_left(held: Run | Budget) -> Decimal | None:
    """Return the amount that can still be reserved; None without a cap."""
    return None if held.cap is None else max(ZERO, held.cap - held.spent - held.reserved)


def is_capped(run: Run) -> bool:
    """True if the run or its project has a cap, even if the cap is used up."""
    budget = Budget.objects.filter(project_id=run.project_id, cap__isnull=False)
    return run.cap is not None or budget.exists()


def reserve(run: Run, prices: Sequence[Decimal | None]) -> Reservation:
    """Reserve the prices in order, as many as the caps of run and project allow.

    The UPDATE statements check the caps, so two workers cannot both reserve the remaining amount.
    """
    if None in prices and is_capped(run):
        limit = _BUDGET if run.cap is None else "a cap"
        return Reservation(
            0,
            f"{run.endpoint.name} has no price, so {limit} cannot be enforced. Enter its prices.",
        )
    known = [price or ZERO for price in prices]
    while known:
        total = sum(known, ZERO)
        if not total or _reserve(run, total):
            return Reservation(len(known))
        known = known[: len(known) // 2]
    return Reservation(0, _explain_stuck(run, [price or ZERO for price in prices]))


def find_overspent(runs: Collection[int]) -> list[Run]:
    """Find those of these running runs that have spent more than a cap allows, because replies cost
    more than was reserved for them, and have more requests left than may be in flight already."""
    if not runs:
        return []
    passed = Q(cap__lt=F("spent")) | Q(project__budget__cap__lt=F("project__budget__spent"))
    found = Run.objects.running().filter(passed, pk__in=runs).order_by("pk")
    return [run for run in found.select_related("endpoint") if _has_unsent(run)]


def _has_unsent(run: Run) -> bool:
    flying = run.endpoint.in_flight
    left = Request.objects.wanted_by(run).still_open()
    return left[: flying + 1].count() > flying


def explain_overspent(run: Run) -> str:
    """Say which cap was passed by the run, or by its project."""
    held: Run | Budget = run
    cap = "the run's cost cap"
    if run.cap is None or run.spent <= run.cap:
        held, cap = Budget.objects.get(project_id=run.project_id), _BUDGET
    return (
        f"Replies cost more than was reserved for them, so {cap} of "
        f"{format_amount(held.cap or ZERO)} is passed: {format_amount(held.spent)} is spent. To "
        "continue, raise it. If the endpoint sends no limit on the tokens of a reply, add another "
        "endpoint with max_tokens in its parameters."
    )


def describe_budget(run: Run) -> str:
    """Describe the project's budget as it is now for a run that it paused; "" for other runs."""
    if run.state != Run.State.PAUSED or _BUDGET not in run.reason:
        return ""
    held = Budget.objects.filter(project_id=run.project_id).first()
    if held is None or held.cap is None:
        return "Now the project has no budget. Resume the run."
    left = format_amount(compute_left(held) or ZERO)
    return f"Now {left} of the budget of {format_amount(held.cap)} is left."


def settle(requests: Iterable[RequestLease], paid: Iterable[tuple[int, Decimal]]) -> None:
    """Free the amounts reserved for the requests, and book the paid amounts, given as (run id,
    amount)."""
    freed: dict[int, Decimal] = defaultdict(Decimal)
    spent: dict[int, Decimal] = defaultdict(Decimal)
    for request in requests:
        if request.leased_for and request.reserved:
            freed[request.leased_for] += request.reserved
    for run_id, amount in paid:
        spent[run_id] += amount
    booked = [pk for pk in sorted(freed.keys() | spent.keys()) if freed[pk] or spent[pk]]
    if not booked:
        return
    for run_id in booked:
        _book(Run.objects.filter(pk=run_id), freed[run_id], spent[run_id])
    with_budget = Run.objects.filter(pk__in=booked, project__budget__isnull=False)
    budgets = with_budget.order_by("project__budget__pk").values_list("project__budget", "pk")
    for budget_id, run_id in budgets:
        _book(Budget.objects.filter(pk=budget_id), freed[run_id], spent[run_id])


def _book(rows: QuerySet[Any], freed: Decimal, spent: Decimal) -> None:
    rows.update(reserved=_round_sum(F("reserved") - freed), spent=_round_sum(F("spent") + spent))


def _reserve(run: Run, total: Decimal) -> bool:
    """Reserve the total on run and project; return False and reserve nothing if a cap does not
    allow it."""
    fits = Q(cap__isnull=True) | Q(cap__gte=_round_sum(F("spent") + F("reserved") + total))
    more = {"reserved": _round_sum(F("reserved") + total)}
    if not Run.objects.filter(fits, pk=run.pk).update(**more):
        return False
    budget = Budget.objects.filter(project_id=run.project_id)
    if budget.filter(fits).update(**more) or not budget.exists():
        return True
    Run.objects.filter(pk=run.pk).update(reserved=_round_sum(F("reserved") - total))
    return False


def _explain_stuck(run: Run, prices: Sequence[Decimal]) -> str:
    held = Run.objects.get(pk=run.pk)
    budget = Budget.objects.filter(project_id=run.project_id).first()
    price = prices[0]
    if held.cap is not None and held.cap < held.spent + price:
        told = _would_pass(f"the run's cost cap of {format_amount(held.cap)}", held, price)
        return told + _price_waiting(run, held, prices)
    if budget and budget.cap is not None and budget.cap < budget.spent + price:
        told = _would_pass(f"{_BUDGET} of {format_amount(budget.cap)}", budget, price)
        return told + _price_waiting(run, budget, prices)
    return ""


def _price_waiting(run: Run, held: Run | Budget, prices: Sequence[Decimal]) -> str:
    """Say what all waiting requests of the run may cost, if they are like those with these
    prices."""
    waiting = Request.objects.wanted_by(run).filter(state="waiting").count()
    if waiting <= 1:
        return ""
    cost = waiting * sum(prices, ZERO) / len(prices)
    needed = held.spent + held.reserved + cost
    return (
        f" The {waiting:,} requests still to send may cost up to about {format_estimate(cost)}; "
        f"about {format_estimate(needed)} would be enough for them."
    )


def _would_pass(cap: str, held: Run | Budget, price: Decimal) -> str:
    """Say which cap would be exceeded, and to which value to raise it, rounded up to the shown
    decimals."""
    counted = held.spent + held.reserved
    needed = round_up(counted + price)
    return (
        f"The next call could exceed {cap}: it may cost {format_amount(price)}, and "
        f"{format_amount(counted)} is already counted. To continue, raise it to at least "
        f"{format_amount(needed)}."
    )


def _round_sum(expression: Any) -> Round:
    """Round a sum, since SQLite adds binary fractions: unrounded sums would leave a small
    remainder."""
    return Round(expression, precision=DECIMAL_PLACES)
