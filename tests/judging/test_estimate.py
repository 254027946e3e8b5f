"""What is foreseen is what a run then asks."""

from decimal import Decimal

import pytest

from annotation.models import Project
from judging.models import Endpoint, Request
from judging.runs import estimate, lifecycle, selection
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
    said |= {"options": lifecycle.RunOptions(seed=8, limit=4)}
    foreseen = estimate.estimate_run(project, **said)
    lifecycle.plan_calls(lifecycle.start_run(project, **said))
    assert (foreseen.items, foreseen.calls) == (4, 8)
    assert foreseen.requests == foreseen.to_ask == Request.objects.count()


def test_what_is_answered_already_is_not_asked_again(project: Project, endpoint: Endpoint) -> None:
    strategy = selection.get_strategy_version("reference")
    run = lifecycle.start_run(
        project, strategy=strategy, endpoint=endpoint, options=lifecycle.RunOptions(seed=1)
    )
    lifecycle.plan_calls(run)
    answer(run, number=2)
    foreseen = estimate.estimate_run(
        project, strategy=strategy, endpoint=endpoint, options=lifecycle.RunOptions(seed=1)
    )
    assert (foreseen.requests, foreseen.stored, foreseen.to_ask) == (6, 2, 4)


def test_what_is_answered_already_is_decided_as_soon_as_it_is_planned(
    project: Project, endpoint: Endpoint
) -> None:
    strategy = selection.get_strategy_version("reference")
    first, again = (
        lifecycle.start_run(
            project, strategy=strategy, endpoint=endpoint, options=lifecycle.RunOptions(seed=seed)
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
        project, strategy=strategy, endpoint=endpoint, options=lifecycle.RunOptions(seed=1)
    )
    run = lifecycle.start_run(
        project, strategy=strategy, endpoint=endpoint, options=lifecycle.RunOptions(seed=1)
    )
    lifecycle.plan_calls(run)
    answer(run)
    after = estimate.estimate_run(
        project, strategy=strategy, endpoint=endpoint, options=lifecycle.RunOptions(seed=1)
    )
    # Six prompts of some 1,400 bytes, 3 bytes a token, 3 a million tokens.
    assert before.cost
    assert Decimal("0.006") < before.cost < Decimal("0.012")
    assert after.cost == Decimal(0)


def test_without_prices_no_cost_is_named(project: Project) -> None:
    endpoint = make_endpoint("http://127.0.0.1:9/v1")
    strategy = selection.get_strategy_version("reference")
    found = estimate.estimate_run(
        project, strategy=strategy, endpoint=endpoint, options=lifecycle.RunOptions(seed=1)
    )
    assert found.cost is None


def test_what_cannot_be_asked_is_refused_before_it_is_counted(project: Project) -> None:
    strategy = selection.get_strategy_version("pairwise")
    with pytest.raises(lifecycle.Refused):
        estimate.estimate_run(
            project,
            strategy=strategy,
            endpoint=make_baseline(),
            options=lifecycle.RunOptions(seed=1),
        )
