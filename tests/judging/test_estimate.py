"""A run asks what was estimated."""

import tracemalloc
from dataclasses import replace
from decimal import Decimal

import pytest

from annotation.models import Project, Revision
from judging.errors import Refused
from judging.models import Endpoint, Request
from judging.runs import estimate, lifecycle, selection
from judging.runs.estimate import PILOT_CALLS, CallEstimate
from stats.estimates import Estimate
from tests.builders import make_project
from tests.judging.builders_judging import answer, make_baseline, make_endpoint, make_items

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    project = make_project()
    make_items(project, 6)
    return project


@pytest.fixture
def endpoint() -> Endpoint:
    return make_endpoint("http://127.0.0.1:9/v1", price_in=Decimal(3), price_out=Decimal(0))


def test_the_run_asks_the_requests_that_were_foreseen(project: Project, endpoint: Endpoint) -> None:
    said = {"strategy": selection.get_strategy_version("pairwise"), "endpoint": endpoint}
    said |= {"config": lifecycle.RunConfig(seed=8, limit=4)}
    estimated = estimate.estimate_run(project, **said)
    lifecycle.plan_calls(lifecycle.start_run(project, **said))
    assert (estimated.items, estimated.calls) == (4, 8)
    assert estimated.requests == estimated.to_ask == Request.objects.count()


def test_what_is_answered_already_is_not_asked_again(project: Project, endpoint: Endpoint) -> None:
    strategy = selection.get_strategy_version("reference")
    run = lifecycle.start_run(
        project, strategy=strategy, endpoint=endpoint, config=lifecycle.RunConfig(seed=1)
    )
    lifecycle.plan_calls(run)
    answer(run, number=2)
    estimated = estimate.estimate_run(
        project, strategy=strategy, endpoint=endpoint, config=lifecycle.RunConfig(seed=1)
    )
    assert (estimated.requests, estimated.stored, estimated.to_ask) == (6, 2, 4)


def test_what_is_answered_already_is_decided_as_soon_as_it_is_planned(
    project: Project, endpoint: Endpoint
) -> None:
    strategy = selection.get_strategy_version("reference")
    first, again = (
        lifecycle.start_run(
            project, strategy=strategy, endpoint=endpoint, config=lifecycle.RunConfig(seed=seed)
        )
        for seed in (1, 2)
    )
    lifecycle.plan_calls(first)
    answer(first, number=2)
    lifecycle.plan_calls(again)
    answered = again.outcomes.filter(calls__request__state="answered").distinct()
    assert set(again.outcomes.settled()) == set(answered)
    assert answered.exists()


def test_the_cost_is_that_of_what_is_still_to_be_asked(
    project: Project, endpoint: Endpoint
) -> None:
    strategy = selection.get_strategy_version("reference")
    before = estimate.estimate_run(
        project, strategy=strategy, endpoint=endpoint, config=lifecycle.RunConfig(seed=1)
    )
    run = lifecycle.start_run(
        project, strategy=strategy, endpoint=endpoint, config=lifecycle.RunConfig(seed=1)
    )
    lifecycle.plan_calls(run)
    answer(run)
    after = estimate.estimate_run(
        project, strategy=strategy, endpoint=endpoint, config=lifecycle.RunConfig(seed=1)
    )
    # Six prompts of some 1,400 bytes, 3 bytes a token, 3 a million tokens.
    assert before.cost
    assert Decimal("0.006") < before.cost < Decimal("0.012")
    assert after.cost == Decimal(0)


def test_the_texts_of_few_items_are_in_memory_at_once(project: Project, endpoint: Endpoint) -> None:
    make_items(project, 194)
    long = {"prompt": "Who?", "gold": "Ann.", "perturbed": "long " * 40_000}
    Revision.objects.update(texts=long)
    tracemalloc.start()
    assert estimate_at(project, endpoint).calls == 200
    # Together, the texts have 40 MB, and as many as JSON.
    assert tracemalloc.get_traced_memory()[1] < 35_000_000
    tracemalloc.stop()


def estimate_at(
    project: Project, endpoint: Endpoint, slug: str = "reference"
) -> estimate.RunEstimate:
    strategy = selection.get_strategy_version(slug)
    config = lifecycle.RunConfig(seed=1)
    return estimate.estimate_run(project, strategy=strategy, endpoint=endpoint, config=config)


def test_before_any_reply_the_price_is_from_the_prompts_alone_to_the_token_limit(
    project: Project,
) -> None:
    endpoint = make_endpoint(
        "http://127.0.0.1:9/v1",
        price_in=Decimal(3),
        price_out=Decimal(6),
        parameters={"max_tokens": 200},
    )
    found = estimate_at(project, endpoint)
    # Six requests. 5 bytes of a prompt are a token at most, 3 at least.
    assert (found.tokens_out.low, found.tokens_out.high) == (0, 6 * 200)
    assert 0 < found.tokens_in.low < found.tokens_in.high
    assert abs(found.tokens_in.low * 5 - found.tokens_in.high * 3) <= 5
    assert found.price
    assert found.price.low == found.least == 3 * found.tokens_in.low / Decimal(1_000_000)
    assert found.price.high == found.cost
    # Each request is rounded up to a token of its own.
    most = (3 * found.tokens_in.high + 6 * 6 * 200) / Decimal(1_000_000)
    assert most <= found.price.high <= most + Decimal("0.00002")


def test_replies_are_as_long_as_earlier_ones_of_the_endpoint_with_any_strategy(
    project: Project,
) -> None:
    endpoint = make_endpoint(
        "http://127.0.0.1:9/v1", price_in=Decimal(0), price_out=Decimal(100_000)
    )
    run = lifecycle.start_run(
        project,
        strategy=selection.get_strategy_version("pairwise"),
        endpoint=endpoint,
        config=lifecycle.RunConfig(seed=1),
    )
    lifecycle.plan_calls(run)
    answer(run, number=1, tokens_out=10)
    answer(run, number=1, tokens_out=30)
    answer(run, number=1, tokens_out=None)
    found = estimate_at(project, endpoint)
    # 20 tokens on average for each of six requests, at a price of 0.1 each.
    assert (found.tokens_out.low, found.tokens_out.high) == (120, 6 * 1024)
    assert found.price
    assert (found.price.low, found.price.high) == (12, Decimal("614.4"))
    assert estimate_at(project, make_endpoint("http://127.0.0.1:9/v2")).tokens_out.low == 0


def test_nothing_to_send_costs_nothing_also_without_a_price(project: Project) -> None:
    endpoint = make_endpoint("http://127.0.0.1:9/v1")
    assert estimate_at(project, endpoint).price is None
    strategy = selection.get_strategy_version("reference")
    run = lifecycle.start_run(
        project, strategy=strategy, endpoint=endpoint, config=lifecycle.RunConfig(seed=1)
    )
    lifecycle.plan_calls(run)
    answer(run)
    found = estimate_at(project, endpoint)
    assert found.price
    assert (found.to_ask, found.price.low, found.price.high) == (0, 0, 0)


def test_without_prices_no_cost_is_named(project: Project) -> None:
    endpoint = make_endpoint("http://127.0.0.1:9/v1")
    strategy = selection.get_strategy_version("reference")
    found = estimate.estimate_run(
        project, strategy=strategy, endpoint=endpoint, config=lifecycle.RunConfig(seed=1)
    )
    assert found.cost is None


def test_what_cannot_be_asked_is_refused_before_it_is_counted(project: Project) -> None:
    strategy = selection.get_strategy_version("pairwise")
    with pytest.raises(Refused, match="needs an evaluator LLM"):
        estimate.estimate_run(
            project,
            strategy=strategy,
            endpoint=make_baseline(),
            config=lifecycle.RunConfig(seed=1),
        )


@pytest.mark.parametrize(
    "each, calls, told",
    [
        ((0.5, 0.25, 1.0), 4, ("2", "1", "4")),
        # A cost is never less than nothing, and has six decimals as prices have.
        ((0.0000014, -0.1, 0.0000016), 1, ("0.000001", "0", "0.000002")),
    ],
)
def test_what_calls_cost_has_the_ends_that_a_pilot_gives(
    each: tuple[float, float, float], calls: int, told: tuple[str, str, str]
) -> None:
    value, low, high = each
    pilot = CallEstimate(PILOT_CALLS, Estimate(1, 1, 1, 9), Estimate(value, low, high, 9))
    found = estimate.estimate_cost(pilot, calls)
    assert found
    assert (found.value, found.low, found.high) == tuple(map(Decimal, told))
    assert estimate.estimate_cost(replace(pilot, n=PILOT_CALLS - 1), calls) is None
    unknown = replace(pilot, cost=Estimate(value, None, None, 1, "one reply"))
    assert estimate.estimate_cost(unknown, calls) is None


def test_a_pilot_is_of_enough_items_for_its_requests() -> None:
    """Items share "gold"; the second has been answered."""
    named = [{"gold", "a"}, set[str](), {"gold", "c"}, {"gold", "d"}, {"other", "e"}]
    needs = [{name.encode() for name in each} for each in named]
    found = [estimate.plan_pilot(needs, number) for number in (0, 1, 3, 4, 5, 9)]
    assert found == [(0, 0), (1, 2), (3, 3), (4, 4), (5, 6), (5, 6)]
