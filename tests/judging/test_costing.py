"""What runs cost, against sums that were made by hand."""

from decimal import Decimal

import pytest
from pytest_django import DjangoAssertNumQueries

from annotation.models import Project
from judging.models import Reply, Run
from judging.results.tables import cost, sensitivity
from judging.runs import lifecycle
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import (
    TWO_CALLS,
    answer,
    make_endpoint,
    make_items,
    make_judged,
    make_run,
)

pytestmark = pytest.mark.django_db


def test_a_request_that_several_calls_share_costs_once(project: Project) -> None:
    # Two items with the same prompt and gold answer: four calls, three requests.
    items = make_items(project, 2)
    first, second = (item.revisions.get() for item in items)
    second.texts |= {"prompt": first.texts["prompt"], "gold": first.texts["gold"]}
    second.save()
    run = make_run(project, make_endpoint("https://judge.invalid/v1"), TWO_CALLS)
    lifecycle.plan_calls(run)
    answer(run, tokens_in=100, tokens_out=10)
    Run.objects.filter(pk=run.pk).update(spent=2)
    for call in run.calls.all():
        reply = call.request.reply
        type(reply).objects.filter(pk=reply.pk).update(cost="0.25")
    run.outcomes.filter(item=items[0]).update(result="detected")
    (row,) = cost.tabulate(Run.objects.for_results())
    assert (row["calls"], row["requests"], row["answered"]) == (4, 3, 3)
    assert (row["tokens"], row["tokens_in"], row["tokens_out"]) == (330, 300, 30)
    assert (row["cost"], row["paid"], row["detected"]) == (0.75, 2, 1)
    assert (row["per_detected"], row["reason"]) == (0.75, None)


def test_cost_and_what_the_run_paid_agree_to_the_last_digit(project: Project) -> None:
    make_items(project, 3)
    prices = {"price_in": Decimal("0.1"), "price_out": Decimal("0.41")}
    run = make_run(project, make_endpoint("https://judge.invalid/v1", **prices))
    lifecycle.plan_calls(run)
    answer(run, tokens_in=100, tokens_out=50)
    (row,) = cost.tabulate(Run.objects.for_results())
    # Three calls of 100 x 0.1 / 10^6 + 50 x 0.41 / 10^6 = 0.0000305.
    assert (row["cost"], row["paid"]) == (0.0000915, 0.0000915)


def test_a_run_may_cost_millions(project: Project) -> None:
    make_items(project, 3)
    run = make_run(project, make_endpoint("https://judge.invalid/v1"))
    lifecycle.plan_calls(run)
    answer(run)
    Reply.objects.update(cost=Decimal("4000000.75"))
    (row,) = cost.tabulate(Run.objects.for_results())
    assert row["cost"] == 12_000_002.25


def test_a_reply_without_a_price_leaves_no_cost(project: Project) -> None:
    make_items(project, 1)
    run = make_run(project, make_endpoint("https://judge.invalid/v1"), TWO_CALLS)
    lifecycle.plan_calls(run)
    answer(run, tokens_in=None)
    (row,) = cost.tabulate([run])
    assert (row["cost"], row["per_detected"], row["tokens"]) == (None, None, None)
    assert row["paid"] is None
    assert (row["without_price"], row["without_tokens"]) == (2, 2)
    assert row["reason"] == "replies without a price"


def test_a_run_without_calls_has_dashes(project: Project) -> None:
    run = make_judged(project, [(item, "detected") for item in make_items(project, 1)])
    run.calls.all().delete()
    (row,) = cost.tabulate([run])
    assert (row["calls"], row["cost"], row["reason"]) == (None, None, "no replies")


def test_what_a_detector_says_of_good_answers_is_no_detected_error(project: Project) -> None:
    errors = make_items(project, 2, "error", ability="", category="")
    clean = make_items(project, 2, "no_error", ability="", category="")
    said = zip([*errors, *clean], ["detected", "missing", "detected", "undetected"], strict=True)
    endpoint = make_endpoint("https://judge.invalid/v1")
    run = make_judged(project, said, strategy="detect-1a", endpoint=endpoint)
    (row,) = cost.tabulate([run])
    assert (row["total"], row["missing"], row["detected"]) == (2, 1, 1)


def test_a_thousand_items_cost_what_those_that_are_settled_cost(project: Project) -> None:
    make_items(project, 4)
    run = make_run(project, make_endpoint("https://judge.invalid/v1"), TWO_CALLS)
    lifecycle.plan_calls(run)
    answer(run)
    Reply.objects.update(cost="0.5")
    replies = Reply.objects.count()
    run.outcomes.update(result="undetected")
    run.outcomes.filter(item__key="item-1").update(result="pending")
    (row,) = cost.tabulate([run])
    # Three of the four items have a result; those that are pending are not paid in full.
    assert row["cost_per_1000"] == replies * 0.5 / 3 * 1000


def test_j_is_that_of_the_page_sensitivity(project: Project) -> None:
    items = [*make_items(project, 4), *make_items(project, 4, "score-invariant")]
    said = [scores(9, 5 if mark == "D" else 9) for mark in "DDUDDUDU"]
    run = make_replied(project, "vanilla", zip(items, said, strict=True))
    (row,), (whole, *_) = cost.tabulate([run]), sensitivity.tabulate([run])
    # 3 of 4 errors are detected, and 2 of 4 score-invariant items.
    assert row["j"] == 0.25
    for name in ("j", "j_low", "j_high", "j_reason"):
        assert row[name] == whole[name]


def test_a_detected_error_costs_as_much_as_the_interval_of_detection_allows(
    project: Project,
) -> None:
    make_items(project, 4)
    run = make_run(project, make_endpoint("https://judge.invalid/v1"), TWO_CALLS)
    lifecycle.plan_calls(run)
    answer(run)
    Reply.objects.update(cost="0.5")
    paid = Reply.objects.count() * 0.5
    run.outcomes.update(result="undetected")
    run.outcomes.filter(item__key="item-1").update(result="detected")
    (row,), (whole, *_) = cost.tabulate([run]), sensitivity.tabulate([run])
    ends = [paid / (4 * whole[f"detection_{end}"]) for end in ("high", "low")]
    assert [row["per_detected_low"], row["per_detected_high"]] == pytest.approx(ends)
    run.outcomes.update(result="undetected")
    assert cost.tabulate([run])[0]["per_detected_low"] is None


def test_a_detector_has_no_j_but_a_reason(project: Project) -> None:
    said = [(item, "detected") for item in make_items(project, 1, "error", ability="", category="")]
    endpoint = make_endpoint("https://judge.invalid/v1")
    (row,) = cost.tabulate([make_judged(project, said, strategy="detect-1a", endpoint=endpoint)])
    assert (row["j"], row["j_reason"]) == (None, "judges no perturbed answers")


def test_any_number_of_runs_are_four_queries(
    project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(2):
        make_judged(project, [(item, "detected") for item in make_items(project, 1)])
    every = list(Run.objects.for_results())
    with django_assert_num_queries(4):
        cost.tabulate(every)
