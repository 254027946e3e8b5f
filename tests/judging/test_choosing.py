"""The page on which an evaluator is chosen, against figures that were made by hand."""

from decimal import Decimal

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from annotation.models import Item, Project
from judging.models import Reply, Run
from judging.results.tables import choose
from judging.runs import lifecycle
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import TWO_CALLS, answer, make_endpoint, make_items, make_run
from tests.judging.test_result_pages import keys, lines, links, shown

pytestmark = pytest.mark.django_db

SAID = {"D": scores(9, 5), "U": scores(9, 9), "-": scores(9, None)}


def make_said(items: list[Item], said: str) -> Run:
    found = zip(items, (SAID[one] for one in said), strict=True)
    return make_replied(items[0].project, "vanilla", found)


@pytest.fixture
def items(project: Project) -> list[Item]:
    """Twelve errors, and ten answers that were changed without one."""
    return [*make_items(project, 12), *make_items(project, 10, "score-invariant")]


def test_the_highest_j_comes_first_and_not_the_highest_detection(items: list[Item]) -> None:
    alarming = make_said(items, "D" * 12 + "D" * 10)
    blind = make_said(items, "U" * 12 + "U" * 10)
    good = make_said(items, "D" * 11 + "-" + "U" * 10)
    rows = choose.tabulate([alarming, blind, good])
    assert [row["run"] for row in rows] == [3, 1, 2]
    assert [(row["detection"], row["false_alarm"], row["j"]) for row in rows] == [
        (1, 0, 1), (1, 1, 0), (0, 0, 0),
    ]  # fmt: skip
    assert [(row["total"], row["missing"], row["errors"], row["invariant"]) for row in rows] == [
        (22, 1, 11, 10), (22, 0, 12, 10), (22, 0, 12, 10),
    ]  # fmt: skip
    # 10 clusters differ alike between the first two: p = 2 / 2^10; all runs differ from the first.
    assert [row["letters"] for row in rows] == ["a", "b", "b"]


def test_runs_that_cannot_be_told_apart_share_a_letter_and_the_page_says_so(
    items: list[Item], browser: Client
) -> None:
    make_said(items, "D" * 8 + "U" * 4 + "U" * 10)
    make_said(items, "D" * 9 + "U" * 3 + "U" * 10)
    make_said(items, "U" * 12 + "D" * 10)
    page = shown(browser, "choose/")
    # Newcombe, from Wilson's .4677 and .9111 of 9 in 12, and 0 and .2775 of none in 10.
    assert (
        "Highest J: 2 · vanilla · judge-2, with 0.75 (0.35 to 0.91), from 12 errors and 10 "
        "score-invariant items."
    ) in page
    assert "no usable reply" not in page
    assert "No difference was shown between it and: 1 · vanilla · judge." in page
    assert [line[:3] for line in lines(page)] == [
        ["2 · vanilla judge-2", "0.75", "a"],
        ["1 · vanilla judge", "0.67", "a"],
        ["3 · vanilla judge-3", "−1.00", "b"],
    ]


def test_the_page_says_how_much_is_missing(items: list[Item], browser: Client) -> None:
    make_said(items, "D" * 12 + "U" * 9 + "-")
    assert "Of its items, 4.5 % have no usable reply. J leaves them out." in shown(
        browser, "choose/"
    )
    make_said(items, "-" * 11 + "U" + "U" * 10)
    page = shown(browser, "choose/")
    assert "from 12 errors and 9 score-invariant items." in page
    # 11 of 22.
    assert "Of the items of a run, up to 50.0 % have no usable reply." in page
    assert "they could change which run is best: see the page Missing." in page


def test_the_best_of_runs_that_only_guess_is_not_praised(
    items: list[Item], browser: Client
) -> None:
    make_said(items, "D" * 6 + "U" * 6 + "D" * 4 + "U" * 6)
    make_said(items, "D" * 6 + "U" * 6 + "D" * 6 + "U" * 4)
    page = shown(browser, "choose/")
    assert "Not shown to be better than chance: the interval is not above 0." in page


def test_a_run_alone_is_compared_with_nothing(items: list[Item], browser: Client) -> None:
    make_said(items, "D" * 12 + "U" * 10)
    assert "No other run here has a J" in shown(browser, "choose/")
    [row] = choose.tabulate(Run.objects.for_results())
    assert (row["letters"], row["j_low"] < 1) == (None, True)


def test_without_score_invariant_items_detection_decides_and_there_is_no_headline(
    project: Project, browser: Client
) -> None:
    items = make_items(project, 4)
    make_said(items, "DUUU")
    make_said(items, "DDUU")
    page = shown(browser, "choose/")
    assert "Highest J" not in page
    assert [line[:4] for line in lines(page)] == [
        [name, "— no score-invariant item", "—", rate]
        for name, rate in (
            ("2 · vanilla judge-2", "50.0 % n 4"),
            ("1 · vanilla judge", "25.0 % n 4"),
        )
    ]


def test_figures_lead_to_their_items(items: list[Item], browser: Client) -> None:
    make_items(items[0].project, 1, duplicate_of=items[0])
    make_said(
        [*items, *Item.objects.filter(duplicate_of=items[0])], "D" * 11 + "-" + "U" * 9 + "--"
    )
    page = shown(browser, "choose/")
    [missing] = links(page, "result=missing")
    assert keys(browser, missing) == ["item-12", "item-22"]
    detected, errors = links(page, "items=errors")
    assert ("result=detected" in detected, "result=parsed" in errors) == (True, True)
    assert len(keys(browser, detected)) == len(keys(browser, errors)) == 11
    # A rate of 0 counts no item that it could lead to.
    [alarms] = links(page, "items=invariant")
    assert len(keys(browser, alarms)) == 9


def test_cost_is_of_a_thousand_items_and_times_are_of_single_replies(
    project: Project, browser: Client
) -> None:
    make_items(project, 4)
    run = make_run(project, make_endpoint("https://judge.invalid/v1"), TWO_CALLS)
    lifecycle.plan_calls(run)
    answer(run)
    replies = list(Reply.objects.order_by("pk"))
    assert len(replies) == 8
    for place, reply in enumerate(replies):
        Reply.objects.filter(pk=reply.pk).update(cost=Decimal("0.25"), seconds=place + 1)
    run.outcomes.update(result="undetected")
    Run.objects.update(state="finished")
    [row] = choose.tabulate(Run.objects.for_results())
    # Eight replies for 2 in all, over four items; the fourth of eight times, and the last.
    assert (row["cost_per_1000"], row["seconds_median"], row["seconds_p95"]) == (500, 4, 8)
    [line] = lines(shown(browser, "choose/"))
    assert line[-3:] == ["500.00", "4.0", "8.0"]


def test_replies_that_were_brought_in_have_no_times(project: Project) -> None:
    make_items(project, 1)
    run = make_run(project, make_endpoint("https://judge.invalid/v1"))
    lifecycle.plan_calls(run)
    answer(run)
    Reply.objects.update(seconds=0)
    [row] = choose.tabulate(Run.objects.for_results())
    assert (row["seconds_median"], row["seconds_reason"]) == (None, choose.NO_TIMES)
    assert (row["cost_per_1000"], row["cost_reason"]) == (None, "replies without a price")


def test_any_number_of_runs_are_as_many_queries(
    items: list[Item], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for said in ("D" * 22, "U" * 22, "D" * 12 + "U" * 10):
        make_said(items, said)
    runs = list(Run.objects.for_results())
    # Outcomes, requests, detected errors, settled items, times.
    with django_assert_num_queries(5):
        choose.tabulate(runs)
    assert choose.tabulate([]) == []


def test_the_best_run_is_another_one_for_another_mix(project: Project, browser: Client) -> None:
    items = [
        *make_items(project, 12, category="spelling", ability="long-form"),
        *make_items(project, 6, category="number-errors"),
        *make_items(project, 6, "score-invariant"),
    ]
    make_said(items, "D" * 12 + "U" * 6 + "U" * 6)
    make_said(items, "DU" * 6 + "D" * 5 + "-" + "U" * 6)
    found = lines(shown(browser, "choose/?view=mix"))
    # As in the data: 12 of 18, and 11 of 17.
    assert [(line[0][0], line[1], line[2][:6]) for line in found] == [
        ("1", "0.67", "66.7 %"), ("2", "0.65", "64.7 %"),
    ]  # fmt: skip
    page = shown(browser, "choose/?view=mix&weight-number-errors=3&weight-spelling=1&intervals=yes")
    assert "Mix: Number errors 75 %, Spelling 25 %." in page
    mixed = lines(page)
    # 1/4 x 1/2 + 3/4 x 1, and 1/4 x 1 + 3/4 x 0.
    assert [(line[0][0], line[1][:4], line[2][:6]) for line in mixed] == [
        ("2", "0.88", "87.5 %"), ("1", "0.25", "25.0 %"),
    ]  # fmt: skip
    assert 'name="weight-spelling" value="1"' in page
    nowhere = lines(shown(browser, "choose/?view=mix&weight-spelling=1&weight-grammar=1&run=1"))
    assert "without Grammar" in nowhere[0][2]
    refused = shown(browser, "choose/?view=mix&weight-spelling=-1&weight-grammar=x")
    assert lines(refused) == found
    assert "Not used: spelling -1; grammar x. A weight is a number above 0." in refused
