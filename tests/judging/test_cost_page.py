"""The page of costs: what it prints and draws, and which items its counts lead to."""

import json
import re

import pytest
from django.test import Client

from annotation.models import Project
from judging.models import Outcome, Reply
from judging.runs import lifecycle
from tests.judging.builders_judging import (
    TWO_CALLS,
    answer,
    make_endpoint,
    make_items,
    make_judged,
    make_run,
)
from tests.judging.test_dataset_page import keys, shown
from tests.judging.test_result_pages import lines

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked(project: Project) -> None:
    """A run over three items whose every reply was answered; nothing has a price."""
    make_items(project, 3)
    run = make_run(project, make_endpoint("https://judge.invalid/v1"), TWO_CALLS)
    lifecycle.plan_calls(run)
    answer(run)


def test_costs_without_prices_are_dashes_with_a_reason(asked: None, browser: Client) -> None:
    [line] = lines(shown(browser, "cost/"))
    # A gold call and one of the perturbed answer of each of three resolved items.
    assert line[8:10] == ["6", "6 of 6"]
    assert line[2:6] == ["— replies without a price"] * 4


def test_what_a_detected_error_cost_is_drawn(asked: None, browser: Client) -> None:
    Reply.objects.update(cost=1)
    Outcome.objects.filter(item__key="item-2").update(result="detected")
    page = shown(browser, "cost/")
    assert '<script id="figures-chart" type="application/json">' in page
    assert "Cost per detected error (USD) by run." in page


def test_where_nothing_was_paid_no_noughts_are_drawn(
    asked: None, project: Project, browser: Client
) -> None:
    assert "No cost is known. Tokens, input and output by run." in shown(browser, "cost/")
    Reply.objects.update(cost=0, tokens_in=0, tokens_out=0)
    page = shown(browser, "cost/")
    assert '<script id="figures-chart"' not in page
    assert "Every run with a known cost was free. There is no chart." in page
    assert "No cost is known" not in page
    [line] = lines(page)
    assert line[4:6] == ["free", "free"]


def test_what_was_paid_for_nothing_says_so(asked: None, browser: Client) -> None:
    Reply.objects.update(cost=1)
    Outcome.objects.update(result="undetected")
    assert "The paid runs detected nothing. Tokens" in shown(browser, "cost/")


def test_the_error_items_of_a_detector_are_those_held_for_an_error(
    project: Project, browser: Client
) -> None:
    errors = make_items(project, 2, "error", ability="", category="")
    clean = make_items(project, 1, "no_error", ability="", category="")
    said = [(errors[0], "detected"), (errors[1], "undetected"), (clean[0], "detected")]
    make_judged(project, said, strategy="detect-1a", endpoint=make_endpoint("https://a.invalid/v1"))
    page = shown(browser, "cost/")
    [line] = lines(page)
    assert (line[6], line[7]) == ("2", "1")
    every, detected = re.findall(r'href="([^"]*truth=error[^"]*)"', page)
    assert keys(browser, every) == ["item-1", "item-2"]
    assert keys(browser, detected) == ["item-1"]


def test_the_highest_j_comes_first_however_cheap_the_others_are(
    project: Project, browser: Client
) -> None:
    make_items(project, 4)
    make_items(project, 4, "score-invariant")
    # J: 1 - 1, 3/4 - 0, and none, since the last run judges no score-invariant item.
    for number, (detected, price) in enumerate(((8, "0.01"), (3, "0.5"), (4, "0.1")), start=1):
        run = make_run(project, make_endpoint(f"https://judge-{number}.invalid/v1"), TWO_CALLS)
        lifecycle.plan_calls(run)
        answer(run)
        Reply.objects.filter(request__calls__run=run).update(cost=price)
        places = list(run.outcomes.order_by("item__position").values_list("pk", flat=True))
        run.outcomes.update(result="undetected")
        run.outcomes.filter(pk__in=places[:detected]).update(result="detected")
    # Judged with another final label, so they do not count.
    run.outcomes.filter(pk__in=places[4:]).update(truth="valid")
    page = shown(browser, "cost/?run=1&run=2&run=3")
    assert [line[0][0] for line in lines(page)] == ["2", "1", "3"]
    assert [line[1] for line in lines(page)] == ["0.75", "0.00", "— no score-invariant item"]
    assert "Cost of 1,000 items against J" in page
    assert "Left out: 1 run without a known cost or without a J." in page
    drawn = json.loads(re.findall(r'<script id="figures-chart"[^>]*>(.*?)</script>', page)[0])
    points = drawn["data"]["values"]
    # Two replies an item.
    assert [(point["word"], point["j"], point["cost"]) for point in points] == [
        ("2", 0.75, 1000), ("1", 0, 20),
    ]  # fmt: skip
