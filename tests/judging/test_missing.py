"""What could not be read, against counts and bounds that were made by hand."""

import re
from html import unescape
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from annotation.models import Project
from judging.models import Run
from judging.results.tables import missing, undetected
from tests.judging.builders_decided import CUT, make_replied, scores, verdicts
from tests.judging.builders_detecting import judge, make_sets
from tests.judging.builders_judging import make_endpoint, make_items, make_judged
from tests.judging.builders_rated import runs_of
from tests.judging.test_behind_figures import keys
from tests.judging.test_people_page import make_rated
from tests.judging.test_result_pages import lines, shown

pytestmark = pytest.mark.django_db

BY = ("ability", "category")


def test_missing_outcomes_are_counted_by_cause_with_bounds_on_the_rate(project: Project) -> None:
    said = [*[scores(9, 5)] * 3, *[scores(9, 9)] * 2, *[scores(9, None)] * 3, ("no", "no")]
    items = make_items(project, len(said) + 1)
    run = make_replied(project, "vanilla", zip(items, [*said, scores(9, 9)], strict=True))
    items[-1].resolutions.update(current=False)
    truncated, unread = missing.tabulate([run], BY)
    assert (truncated["cause"], truncated["n"]) == ("truncated", 3)
    assert (unread["cause"], unread["n"]) == ("unparsable", 1)
    for row in (truncated, unread):
        assert (row["total"], row["missing"], row["parsed"]) == (9, 4, 5)
        assert (row["lowest"], row["highest"]) == (2 / 9, 6 / 9)


def test_one_order_that_did_not_choose_gold_is_undetected_either_way(project: Project) -> None:
    gold, _ = verdicts("G")
    other, _ = verdicts("P")
    said = [verdicts("G"), verdicts("P"), (gold, CUT), (other, CUT)]
    items = make_items(project, len(said))
    (row,) = missing.tabulate(
        [make_replied(project, "pairwise", zip(items, said, strict=True))], BY
    )
    assert (row["cause"], row["n"], row["total"]) == ("one_order", 2, 4)
    # P and the last pair for sure; the third could have been either.
    assert (row["lowest"], row["highest"]) == (2 / 4, 3 / 4)


def test_the_formula_and_the_words_of_the_page_give_the_lower_bound(
    project: Project, browser: Client
) -> None:
    said = [verdicts("G"), verdicts("P"), (verdicts("P")[0], CUT)]
    make_replied(project, "pairwise", zip(make_items(project, 3), said, strict=True))
    page = shown(browser, "missing/")
    # One undetected pair and a settled one: not "undetected / total", which is 1 of 3.
    assert lines(page)[0][2] == "66.7 % n 3"
    assert "(undetected + settled) / total to (undetected + missing) / total" in page
    assert "A pair with one usable order that did not choose gold is undetected in both." in page
    assert "as detected, except pairs with one usable order that did not choose gold" in page


def test_shares_of_repeats_count_as_shares_in_the_bounds(project: Project) -> None:
    said = [scores(9, 5, 9, 9), scores(9, None, 9, None)]
    items = make_items(project, 2)
    run = make_replied(project, "vanilla", zip(items, said, strict=True), samples=2)
    (row,) = missing.tabulate([run], BY)
    assert (row["lowest"], row["highest"]) == (0.5 / 2, 1.5 / 2)


def test_a_group_that_lacks_nothing_has_its_rate_for_bounds(project: Project) -> None:
    run = make_replied(project, "vanilla", [(make_items(project, 1)[0], scores(9, 9))])
    (row,) = missing.tabulate([run], BY)
    assert (row["cause"], row["n"], row["missing"]) == (None, 0, 0)
    assert row["lowest"] == row["highest"] == 1


def test_whether_replies_are_missing_depends_on_the_category(project: Project) -> None:
    units = make_items(project, 12, category="incorrect-units", ability="reasoning")
    numbers = make_items(project, 12)
    said = [*[scores(9, None)] * 12, *[scores(9, 5)] * 12]
    run = make_replied(project, "vanilla", zip([*units, *numbers], said, strict=True))
    rows = missing.tabulate([run], BY)
    assert {row["p"] for row in rows} == {1 / 1000}
    few = make_replied(project, "vanilla", zip(numbers[:2], said[-2:], strict=True))
    (row,) = missing.tabulate([few], BY)
    assert (row["p"], row["p_reason"]) == (None, "one group")


def test_any_number_of_runs_are_three_queries(
    project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    items = make_items(project, 2)
    for _ in range(2):
        make_replied(project, "vanilla", [(item, scores(9, None)) for item in items])
    runs = list(Run.objects.for_results())
    with django_assert_num_queries(3):
        missing.tabulate(runs, BY)


def test_a_detector_has_causes_and_neither_bounds_nor_an_undetected_rate(project: Project) -> None:
    run = judge(make_sets(project), "DU--UU", endpoint=make_endpoint("http://a"))
    perturbed = make_replied(project, "vanilla", [(make_items(project, 1)[0], scores(9, 9))])
    for by in ((), ("ability",), BY):
        found = missing.tabulate([perturbed, run], by)
        assert [row["run"] for row in found] == [perturbed.number, run.number]
        row = found[-1]
        assert (row["total"], row["missing"], row["parsed"]) == (6, 2, 4)
        assert (row["cause"], row["n"], row["p"]) == ("truncated", 2, None)
        assert row["lowest"] is row["highest"] is None
        assert [row["run"] for row in undetected.tabulate_undetected([perturbed, run], by)] == [
            perturbed.number
        ]


def test_categories_that_the_taxonomy_lacks_come_from_a_to_z(project: Project) -> None:
    items = [
        *make_items(project, 3, "error", category="zoo"),
        *make_items(project, 1, "error", category="art"),
        *make_items(project, 2, "error", category="law"),
    ]
    judged = [(item, "detected") for item in items]
    run = make_judged(project, judged, strategy="detect-1a", endpoint=make_endpoint("http://a"))
    found = [row["category"] for row in missing.tabulate([run], ["category"])]
    assert found == ["art", "law", "zoo"]


def test_a_check_of_explanations_is_compared_with_no_run(project: Project, browser: Client) -> None:
    items = make_items(project, 4)
    half, most = [scores(9, 9)] * 2 + [scores(9, None)] * 2, [scores(9, 5)] * 3 + [scores(9, None)]
    one, _ = (
        make_replied(project, "vanilla", zip(items, said, strict=True)) for said in (half, most)
    )
    flags = [('{"flag": true}',), ('{"flag": false}',), ('{"flag": false}',)]
    checked = list(zip(items, flags, strict=False))
    make_replied(project, "explanation-check", checked, sources=[one], base=one)
    # Undetected are two to four of four items, and none or one. The rate of the check, two of
    # three, lies between the first bounds.
    page = shown(browser, "missing/?by=")
    assert "For no two runs could the missing replies change which one detects more." in page
    assert "explanation-check" in page


def test_of_ratings_all_that_could_be_read_are_parsed(tmp_path: Path) -> None:
    runs = runs_of(make_rated(tmp_path, dozens=1))
    row = next(row for row in missing.tabulate(runs, ()) if row["cause"])
    assert (row["strategy"], row["total"], row["parsed"], row["n"]) == ("likert-no-gold", 12, 11, 1)
    assert undetected.tabulate_undetected(runs, BY) == []


@pytest.mark.parametrize("by", ["", "ability", "ability,category"])
def test_what_a_detector_lacks_leads_to_its_items(
    project: Project, browser: Client, by: str
) -> None:
    judge(make_sets(project), "DU--UU", endpoint=make_endpoint("http://a"))
    page = browser.get(f"/projects/fbi/results/missing/?by={by}").content.decode()
    found = [unescape(one) for one in re.findall(r'href="([^"]*#outcomes)"', page)]
    # Those without a verdict, in all and of their one cause.
    assert [len(keys(browser, one)) for one in found] == [2, 2]
