"""Dose and response, and expected beside given penalties, as the page shows them."""

import pytest
from django.test import Client

from annotation.models import Item, Project
from charts.axes import RATES
from judging.models import Run
from judging.results.tables import doses
from stats.estimates import Estimate
from tests.annotation.test_agreement import make_label
from tests.builders import make_member
from tests.judging.builders_decided import make_replied, scores, verdicts
from tests.judging.builders_judging import make_items
from tests.judging.test_result_pages import keys, lines, links, shown

pytestmark = pytest.mark.django_db

DOSES, PENALTIES = "sensitivity/?view=doses", "sensitivity/?view=penalties"


@pytest.fixture
def items(project: Project) -> list[Item]:
    return [
        *make_items(project, 2, dose=1),
        *make_items(project, 3, dose=2),
        *make_items(project, 1, dose=2, category="spelling", ability="long-form"),
        *make_items(project, 2, "score-invariant"),
    ]


@pytest.fixture
def run(project: Project, items: list[Item]) -> Run:
    given = [(9, 9), (9, 8), (9, 5), (9, 6), (9, None), (9, 9), (9, 9), (9, 8)]
    said = [scores(*one) for one in given]
    return make_replied(project, "vanilla", zip(items, said, strict=True))


@pytest.fixture
def asked(items: list[Item]) -> None:
    """Of item 2 a little is expected, of items 3 and 4 a lot."""
    ann = make_member(items[0].project, alias="ann")
    for item, effect in zip(items[1:4], ("little", "lot", "lot"), strict=True):
        make_label(item, ann, {"choice": "valid", "effect": effect})


def test_an_axis_ends_at_the_next_tenth_of_the_scale_and_may_start_below_nought() -> None:
    found = [Estimate(0.25, -0.12, 0.61, 9), Estimate(None, None, None, 0)]
    axis = doses._axis("penalty", found)
    assert (axis.low, axis.high) == (-0.2, 0.7)
    assert doses._axis("penalty", []).high == 0.1
    assert doses._axis("detection", found) is RATES


def test_a_line_is_a_dose_of_a_run(run: Run, browser: Client) -> None:
    few = "n 2 scale 1 to 10"
    # Errors, items, questions, missing, detected, points off; 4.5, (4 + 3 + 0) / 3, of 9 points.
    assert lines(shown(browser, DOSES)) == [
        ["1 · vanilla judge", "1", "2", "2", "0", "50.0 % n 2", f"0.50 {few}", "5.6 %"],
        ["1 · vanilla judge", "2", "3", "3", "1", "66.7 % n 3", "2.33 n 3 scale 1 to 10", "25.9 %"],
    ]


def test_lines_lead_to_the_items_of_the_dose(run: Run, browser: Client) -> None:
    page = shown(browser, DOSES)
    # The number of items, the n of the rate, and the penalty.
    [of_two, _, _] = links(page, "dose=2&result=parsed")
    [detected] = links(page, "dose=2&result=detected")
    [missing] = links(page, "dose=2&result=missing")
    assert [keys(browser, one) for one in (of_two, detected, missing)] == [
        ["item-3", "item-4", "item-6"], ["item-3", "item-4"], ["item-5"],
    ]  # fmt: skip


def test_doses_of_a_group_lead_to_its_items_alone(run: Run, browser: Client) -> None:
    page = shown(browser, f"{DOSES}&by=ability,category&ability=long-form")
    [line] = lines(page)
    assert line[:4] == ["Spelling", "Long form", "2", "1"]
    assert {tuple(keys(browser, one)) for one in links(page, "result=parsed")} == {("item-6",)}


def test_a_run_without_scores_of_gold_has_a_reason_and_no_chart_of_points(
    project: Project, items: list[Item], browser: Client
) -> None:
    make_replied(project, "pairwise", [(item, verdicts("G")) for item in items])
    page = shown(browser, f"{DOSES}&response=penalty")
    assert lines(page)[0][-2:] == ["— the gold answer has no score of its own", "—"]
    assert '<script id="figures-chart"' not in page


def test_a_score_without_a_scale_has_points_and_no_share(project: Project, browser: Client) -> None:
    [item] = make_items(project, 1, dose=1)
    make_replied(project, "length", [(item, scores(40, 30))])
    page = shown(browser, f"{DOSES}&response=penalty")
    [line] = lines(page)
    assert line[-2:] == ["10.00 n 1", "—"]
    assert '<script id="figures-chart"' not in page


def test_a_line_of_trends_has_slopes_in_points_and_says_why_there_is_no_p(
    run: Run, browser: Client
) -> None:
    few = "under 10 clusters"
    # One of two is found with one error, two of three with two; the penalties are .5 and 7 / 3.
    assert lines(shown(browser, "sensitivity/?view=dose-trend")) == [
        ["1 · vanilla judge", "5", "5", "1", "2", "+16.7", f"— {few}", "5", "1.83", f"— {few}"],
    ]


def test_without_a_ladder_the_page_says_how_to_make_one(project: Project, browser: Client) -> None:
    make_replied(project, "vanilla", [(make_items(project, 1)[0], scores(9, 5))])
    assert "No figures here yet" in shown(browser, "sensitivity/?view=dose-trend")
    page = shown(browser, DOSES)
    assert "No figures here yet" in page
    assert "with the number of errors in a column “dose”" in page


@pytest.mark.usefixtures("asked")
def test_given_penalties_stand_beside_what_people_expect(run: Run, browser: Client) -> None:
    found = lines(shown(browser, PENALTIES))
    assert [(line[1], line[2], line[5], line[6].split()[0]) for line in found] == [
        ("None: score-invariant", "2", "50.0 % n 2", "0.50"),
        ("A little", "1", "100.0 % n 1", "1.00"),
        ("A lot", "2", "100.0 % n 2", "3.50"),
        ("No answer", "2", "0.0 % n 2", "0.00"),
    ]


@pytest.mark.usefixtures("asked")
def test_expected_penalties_lead_to_their_items(run: Run, browser: Client) -> None:
    page = shown(browser, PENALTIES)
    of_lot, *_ = links(page, "expected=lot&result=parsed")
    of_none, *_ = links(page, "expected=nobody+said&result=parsed")
    missing, *_ = links(page, "expected=nobody+said&result=missing")
    calm, *_ = links(page, "items=invariant&ability=score-invariant&result=parsed")
    assert [keys(browser, one) for one in (of_lot, of_none, missing, calm)] == [
        ["item-3", "item-4"], ["item-1", "item-6"], ["item-5"], ["item-7", "item-8"],
    ]  # fmt: skip


@pytest.mark.usefixtures("asked")
def test_penalties_by_ability_tell_what_is_and_what_was_meant_to_be_score_invariant(
    project: Project, items: list[Item], browser: Client
) -> None:
    calm = {"category": "score-invariant", "ability": "score-invariant"}
    found = [*items, *make_items(project, 1, "score-invariant", **calm)]
    found += make_items(project, 3, "valid", **calm)
    make_replied(project, "vanilla", [(item, scores(9, 5)) for item in found])
    page = shown(browser, f"{PENALTIES}&by=ability&ability=score-invariant")
    assert [line[:3] for line in lines(page)] == [
        ["Score-invariant", "None: score-invariant", "3"],
        ["Score-invariant, labelled as errors", "No answer", "3"],
    ]
    behind = {tuple(keys(browser, one)) for one in links(page, "result=parsed")}
    assert behind == {("item-7", "item-8", "item-9"), ("item-10", "item-11", "item-12")}


@pytest.mark.usefixtures("asked")
def test_expected_penalties_are_sorted_by_how_much_they_are(run: Run, browser: Client) -> None:
    found = lines(shown(browser, f"{PENALTIES}&sort=-expected"))
    assert [line[1] for line in found] == [
        "No answer", "A lot", "A little", "None: score-invariant",
    ]  # fmt: skip
