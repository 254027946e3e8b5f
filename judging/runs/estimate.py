"""Estimate what a run would request and cost before it starts.

The cost of a call is estimated from stored replies of the same strategy and endpoint. Without
enough of them, it is a range: from the prompts with replies as short as the endpoint's earlier
ones, to the limit up to which a cap reserves.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from django.db.models import Avg

from annotation.db.batches import make_batches
from annotation.models import Project, Revision
from judging.evaluators.prices import (
    BYTES_PER_TOKEN,
    DEFAULT_MAX_TOKENS,
    bound_cost,
    compute_cost,
    estimate_tokens,
    find_token_limit,
)
from judging.evaluators.providers import merge_defaults
from judging.models import Budget, Endpoint, Reply, Request, Run, StrategyVersion
from judging.runs import amounts, pinning, run_config, spending, start_checks
from judging.runs.engine import calls
from judging.runs.engine.digests import shuffle_keys
from judging.runs.lifecycle import RunConfig
from judging.runs.run_items import DrawnItems
from judging.strategies import Strategy, draws, frames
from stats.estimates import Estimate
from stats.means import student_mean

# The number of calls in a pilot; an estimate needs at least this many replies.
PILOT_CALLS = 30
# The number of latest replies used for an estimate.
MAX_REPLIES = 1000
BATCH = 200
# The number of items whose texts are in memory at the same time: they may have megabytes each.
RENDERED_TOGETHER = 50
# English has about 4.3 bytes of UTF-8 per token, so hardly any prompt has more than 5: the
# ends of the range of input tokens.
_BYTES_PER_TOKEN = (5, BYTES_PER_TOKEN)


@dataclass(frozen=True)
class CallEstimate:
    """The usage of one call, estimated from `n` replies, with 95 % intervals: tokens in and out
    together, and the cost at the endpoint's current prices.

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


@dataclass(frozen=True)
class UsageRange:
    """From `low` to `high`, both included: tokens, or an amount in the site's currency."""

    low: Decimal
    high: Decimal


@dataclass(frozen=True)
class TimeEstimate:
    """How long the requests of a run may take: `seconds` in all, with `in_flight` calls at the same
    time and at most the endpoint's calls per minute, if a call takes `per_call` seconds as the
    latest `n` replies did: those of the same "strategy" and endpoint, of the same "endpoint", or of
    the same "model" at other endpoints, as `replies_of` says. Retries and pauses are not
    included."""

    seconds: float
    per_call: float
    in_flight: int
    n: int
    replies_of: str


@dataclass(frozen=True)
class SameItems:
    """What became of the items of an earlier run, number `number`, with `items` items. The new run
    can use `used` of them; `changed` of these have another text now, which is the one that is sent.
    The others were removed, have no final label that the strategy can use, serve as examples, or
    are not among the chosen ones."""

    number: int
    items: int
    used: int
    changed: int

    @property
    def left_out(self) -> int:
        """The number of items that the new run cannot use."""
        return self.items - self.used


@dataclass(frozen=True)
class Shortage:
    """A message about a `limit`, "cap" or "budget", that is below an estimated price."""

    limit: str
    message: str


def estimate_call(strategy: StrategyVersion, endpoint: Endpoint) -> CallEstimate:
    """Estimate the usage of one call from the past calls of this strategy version to this
    endpoint."""
    asked = Reply.objects.filter(
        request__calls__run__strategy=strategy, request__calls__run__endpoint=endpoint
    )
    counts = ("tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning")
    columns = asked.order_by("-pk").values_list("pk", *counts, named=True)
    replies = list(columns.distinct()[:MAX_REPLIES])
    prices = endpoint.prices()
    costs = [compute_cost(prices, one) for one in replies]
    return CallEstimate(
        n=len(replies),
        tokens=student_mean(
            [
                float(one.tokens_in + one.tokens_out)
                for one in replies
                if one.tokens_in is not None and one.tokens_out is not None
            ]
        ),
        cost=student_mean([float(one) for one in costs if one is not None]),
    )


def estimate_time(
    strategy: StrategyVersion, endpoint: Endpoint, to_ask: int
) -> TimeEstimate | None:
    """Estimate how long `to_ask` requests take, from the nearest earlier replies that there are;
    None without any, without requests, and for an endpoint that is not called."""
    if not to_ask or endpoint.is_offline:
        return None
    known = Reply.objects.filter(request__endpoint=endpoint)
    sources = {
        "strategy": known.filter(request__calls__run__strategy=strategy),
        "endpoint": known,
        "model": Reply.objects.filter(
            request__endpoint__provider=endpoint.provider, request__endpoint__model=endpoint.model
        ),
    }
    for source, replies in sources.items():
        latest = replies.order_by("-pk").values_list("pk", "seconds").distinct()[:MAX_REPLIES]
        took = [seconds for _, seconds in latest]
        if not took:
            continue
        per_call = sum(took) / len(took)
        at_once = min(endpoint.in_flight, to_ask)
        allowed = to_ask * 60 / endpoint.per_minute if endpoint.per_minute else 0.0
        seconds = max(per_call * to_ask / at_once, allowed)
        return TimeEstimate(seconds, per_call, at_once, len(took), source)
    return None


def plan_pilot(unanswered: Iterable[Collection[bytes]], number: int) -> tuple[int, int]:
    """Plan a pilot that sends `number` requests or slightly more. `unanswered` has the unanswered
    requests of each item, in the order in which items are drawn; items may share requests. Return
    the number of items to draw and of requests that they send, which may be fewer if there are no
    more."""
    items, sent = 0, set[bytes]()
    for requests in unanswered:
        if len(sent) >= number:
            break
        items += 1
        sent.update(requests)
    return items, len(sent)


def estimate_cost(pilot: CallEstimate, calls: int) -> CostEstimate | None:
    """Estimate the cost of `calls` calls from a pilot; None if the pilot is too small or has no
    known cost."""
    each = pilot.cost
    if not pilot.is_enough or each.value is None or each.low is None or each.high is None:
        return None
    bounds = (each.value, max(0.0, each.low), each.high)
    return CostEstimate(*(round(Decimal(one * calls), 6) for one in bounds))


@dataclass
class RenderedRequests:
    """The different requests of a run: their digests, as bytes since there may be millions, their
    size in bytes together, and what they may cost together at most, None if a price is unknown."""

    digests: set[bytes] = field(default_factory=set)
    size: int = 0
    cost: Decimal | None = Decimal(0)

    def add(self, digest: bytes, body: bytes, cost: Decimal | None) -> None:
        """Add a request and what it may cost at most."""
        if digest not in self.digests:
            self.digests.add(digest)
            self.size += len(body)
            self.cost = None if self.cost is None or cost is None else self.cost + cost


@dataclass(frozen=True)
class RequestsEstimate:
    """What the calls of a run, or of one of its supplements, would request.

    The calls need `requests` different requests; `stored` requests are already answered and cost
    nothing. `cost` is what the remaining requests may cost at most by the length of their prompts,
    None if prices are unknown, and `least` what they cost if the replies are as short as the
    endpoint's earlier ones. `tokens_in` and `tokens_out` are the ranges of their tokens. The later
    steps of a chain are unknown until the earlier steps are answered, so each call of a later step
    counts as one request. `has_token_limit` is False if an answer may have any number of tokens, so
    that it can cost more than a cap reserves.
    """

    requests: int
    stored: int
    cost: Decimal | None
    least: Decimal | None
    tokens_in: UsageRange
    tokens_out: UsageRange
    has_token_limit: bool

    @property
    def to_ask(self) -> int:
        """The number of requests that are still to be sent and paid for."""
        return self.requests - self.stored

    @property
    def price(self) -> UsageRange | None:
        """What the requests will cost, from `least` to `cost`; None if a price is unknown."""
        if not self.to_ask:
            return UsageRange(Decimal(0), Decimal(0))
        if self.cost is None or self.least is None:
            return None
        return UsageRange(min(self.least, self.cost), self.cost)


@dataclass(frozen=True)
class RunEstimate(RequestsEstimate):
    """What a run with `items` items and `calls` calls would request.

    `by_pilot` is an estimate with an interval, None until there is a pilot; a pilot over
    `pilot_items` items sends the `pilot_calls` that are missing until then. `labelling` is the
    number of items still being labelled. `examples` are the keys of the items shown in every
    prompt. `same_items` says what became of the items of an earlier run, if the new run shall use
    the same. `axes` are those that the run would pin. `time` is None if no reply says how long a
    call takes. `items_digest` is that of the items that were estimated.
    """

    items: int
    calls: int
    pilot: CallEstimate
    by_pilot: CostEstimate | None
    pilot_items: int
    pilot_calls: int
    labelling: int = 0
    examples: tuple[str, ...] = ()
    same_items: SameItems | None = None
    time: TimeEstimate | None = None
    axes: tuple[str, ...] = ()
    drawn: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    drawn_lines: tuple[str, ...] = ()
    items_digest: str = ""

    @property
    def price(self) -> UsageRange | None:
        """What the run will cost: the interval from a pilot or, before there is one, from `least`
        to `cost`; None if a price is unknown."""
        if self.to_ask and self.by_pilot:
            return UsageRange(self.by_pilot.low, self.by_pilot.high)
        return super().price


def estimate_run(
    project: Project,
    *,
    strategy: StrategyVersion,
    endpoint: Endpoint,
    config: RunConfig,
) -> RunEstimate:
    """Estimate what `lifecycle.start_run` with the same arguments would request, by rendering every
    prompt.

    Raises `Refused` for an endpoint that this strategy cannot use, and if there are no items or too
    many calls.
    """
    run = config.draft(project, strategy, endpoint)
    asked = run.pinned_strategy()
    start_checks.check_endpoint(asked, endpoint, parameters=run.pinned["parameters"])
    # The cost hardly depends on which items the seed draws.
    seed = config.seed or 0
    drawn = config.draw(project, asked, seed)
    pinning.pin_examples(run, drawn.examples)
    rendered = RenderedRequests()
    by_key: dict[str, list[bytes]] = {}
    for batch in make_batches(drawn.places, RENDERED_TOGETHER):
        for key, digest, body in _render_requests(run, asked, batch, config.over):
            rendered.add(digest, body, spending.estimate_request(endpoint, run, body))
            by_key.setdefault(key, []).append(digest)
    answered = find_answered(rendered.digests)
    made = len(drawn.places) * run.samples * len(frames.list_calls(asked))
    later = made * asked.last_step
    requests = estimate_requests(run, rendered, len(answered), later)
    pilot = estimate_call(strategy, endpoint)
    steps = asked.last_step + 1
    pilot_items, first_calls = plan_pilot(
        (set(by_key.get(key, ())) - answered for key in shuffle_keys(seed, drawn.keys)),
        -(-(PILOT_CALLS - pilot.n) // steps),
    )
    return RunEstimate(
        **vars(requests),
        items=len(drawn.items),
        calls=made + later,
        pilot=pilot,
        by_pilot=estimate_cost(pilot, requests.to_ask),
        pilot_items=pilot_items,
        pilot_calls=first_calls * steps,
        labelling=start_checks.count_being_labelled(run, drawn.items),
        examples=tuple(row["key"] for row in drawn.examples),
        same_items=_compare_items(project, asked, config, drawn),
        time=estimate_time(strategy, endpoint, requests.to_ask),
        axes=run_config.load_overrides(run.pinned).axes or (),
        drawn=draws.count(asked, drawn.drawn),
        drawn_lines=tuple(draws.describe_counts(asked, drawn.drawn)),
        items_digest=drawn.digest(),
    )


def estimate_requests(
    run: Run, rendered: RenderedRequests, stored: int, later: int = 0
) -> RequestsEstimate:
    """Estimate what requests would cost that are sent as the run pins; `stored` of them are already
    answered, and `later` is the number of calls of later steps."""
    number = len(rendered.digests)
    to_ask = number - stored + later
    # The requests that are answered already are like those that are not.
    size = to_ask * rendered.size // max(1, number)
    tokens_in = UsageRange(*(Decimal(-(-size // one)) for one in _BYTES_PER_TOKEN))
    tokens_out = _estimate_tokens_out(run.endpoint, run, to_ask)
    return RequestsEstimate(
        requests=number + later,
        stored=stored,
        cost=None if rendered.cost is None else rendered.cost / max(1, number) * to_ask,
        least=bound_cost(run.endpoint.prices(), int(tokens_in.low), int(tokens_out.low), min),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        has_token_limit=find_token_limit(merge_defaults(run.pinned)) is not None,
    )


def _estimate_tokens_out(endpoint: Endpoint, run: Run, to_ask: int) -> UsageRange:
    """The tokens of `to_ask` replies: at least as many as the endpoint's latest replies have, or
    none if there are none yet; at most the token limit of the run."""
    latest = Reply.objects.filter(request__endpoint=endpoint, tokens_out__isnull=False)
    usual = latest.order_by("-pk")[:MAX_REPLIES].aggregate(mean=Avg("tokens_out"))["mean"] or 0
    limit = 0 if endpoint.is_offline else estimate_tokens(b"", run.pinned["parameters"])
    low = min(round(usual * to_ask), limit * to_ask)
    return UsageRange(Decimal(low), Decimal(limit * to_ask))


def _compare_items(
    project: Project, asked: Strategy, config: RunConfig, drawn: DrawnItems
) -> SameItems | None:
    if config.same_as is None:
        return None
    before = dict(config.same_as.outcomes.values_list("item", "revision"))
    if config.limit is not None:
        drawn = replace(config, limit=None).draw(project, asked, config.seed or 0, one_axis=True)
    now = {place["item_id"]: place["revision_id"] for place in drawn.places}
    changed = sum(before[item] != revision for item, revision in now.items())
    return SameItems(config.same_as.number, len(before), len(now), changed)


def find_shortages(
    project: Project, requests: RequestsEstimate, named: str, left: Decimal | None
) -> list[Shortage]:
    """Compare the estimated price with what is left of a run's cap, which the words `named` name,
    and with what is left of the project's budget; return one shortage of each at most."""
    price, has_token_limit = requests.price, requests.has_token_limit
    told = _describe_shortage(left, price, "The run then pauses until you raise it.")
    if not told and not has_token_limit:
        told = _describe_risk(left, price)
    of_cap = [Shortage("cap", f"{named} {told}")] if told else []
    return [*of_cap, *compare_budget(project, price, has_token_limit=has_token_limit)]


def compare_budget(
    project: Project, price: UsageRange | None, *, has_token_limit: bool
) -> list[Shortage]:
    """Compare an estimated price with what is left of the project's budget; return one shortage at
    most. `has_token_limit`: the tokens of an answer are limited."""
    held = Budget.objects.filter(project=project).first()
    left = spending.compute_left(held) if held else None
    told = _describe_shortage(left, price, "Runs then pause until a lead raises it.")
    if not told and not has_token_limit:
        told = _describe_risk(left, price)
    named = f"The {amounts.format_amount(left or spending.ZERO)} left of the project's budget"
    return [Shortage("budget", f"{named} {told}")] if told else []


def _describe_shortage(left: Decimal | None, price: UsageRange | None, then: str) -> str:
    if left is None or price is None or price.high <= left:
        return ""
    enough = "will not be enough" if price.low > left else "may not be enough"
    return f"{enough}. {then}"


def _describe_risk(left: Decimal | None, price: UsageRange | None) -> str:
    if left is None or price is None or not price.high:
        return ""
    return (
        f"may be exceeded: answers have no token limit, and {DEFAULT_MAX_TOKENS:,} tokens are "
        "reserved for each. Set max_tokens among the parameters."
    )


def sum_prices(found: Sequence[RunEstimate]) -> UsageRange | None:
    """Add up the price ranges of several runs; None if none of them is known. The bounds are sums
    of bounds, so the range is wider than necessary."""
    known = [one.price for one in found if one.price]
    if not known:
        return None
    zero = Decimal(0)
    return UsageRange(sum((one.low for one in known), zero), sum((one.high for one in known), zero))


def _render_requests(
    run: Run, strategy: Strategy, places: list[dict[str, Any]], over: Run | None
) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield the first requests of these places: the key of the item, the digest, and the body."""
    revisions = Revision.objects.only("texts").in_bulk([place["revision_id"] for place in places])
    keys = {place["item_id"]: place["key"] for place in places}
    outcomes = [pinning.build_outcome(run, place) for place in places]
    for outcome in outcomes:
        outcome.revision = revisions[outcome.revision_id]
    wanted = calls.build_first_calls(run, strategy, outcomes, base=over)
    for one, digest, body in calls.render_calls(run, strategy, wanted):
        yield keys[one.outcome.item_id], bytes.fromhex(digest), body


def find_answered(digests: Iterable[bytes]) -> set[bytes]:
    """Find those of the requests that are already answered, by their digests."""
    found: set[bytes] = set()
    for batch in make_batches(digests, BATCH):
        wanted = [digest.hex() for digest in batch]
        answered = Request.objects.filter(digest__in=wanted, state="answered")
        found.update(map(bytes.fromhex, answered.values_list("digest", flat=True)))
    return found
