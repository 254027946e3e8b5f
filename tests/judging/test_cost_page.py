"""The page of costs: what it prints and draws, and which items its counts lead to."""

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
    assert line[2:4] == ["6", "6 of 6"]
    assert line[6:8] == ["— replies without a price"] * 2


def test_what_a_detected_error_cost_is_drawn(asked: None, browser: Client) -> None:
    Reply.objects.update(cost=1)
    Outcome.objects.filter(item__key="item-2").update(result="detected")
    page = shown(browser, "cost/")
    assert '<script id="figures-chart" type="application/json">' in page
    assert "Cost per detected error by run." in page


def test_where_nothing_was_paid_no_noughts_are_drawn(
    asked: None, project: Project, browser: Client
) -> None:
    assert "No cost is known. Tokens, input and output by run." in shown(browser, "cost/")
    Reply.objects.update(cost=0, tokens_in=0, tokens_out=0)
    page = shown(browser, "cost/")
    assert '<script id="figures-chart"' not in page
    assert "No cost is known. There is no chart." in page
    [line] = lines(page)
    assert line[6:8] == ["free", "free"]


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
    assert (line[1], line[8]) == ("2", "1")
    every, detected = re.findall(r'href="([^"]*truth=error[^"]*)"', page)
    assert keys(browser, every) == ["item-1", "item-2"]
    assert keys(browser, detected) == ["item-1"]
