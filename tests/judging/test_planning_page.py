"""The page on which further items are planned, against numbers that were made by hand."""

import pytest
from django.test import Client

from annotation.models import Item, Project
from judging.models import Reply, Run
from judging.results.tables import planning
from judging.runs import lifecycle
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import answer, make_endpoint, make_items, make_run
from tests.judging.test_result_pages import keys, lines, links, shown

pytestmark = pytest.mark.django_db

# Detected, undetected and missing.
SAID = {"D": scores(9, 5), "U": scores(9, 9), "M": scores(9, None)}


def make_said(items: list[Item], said: str) -> Run:
    found = zip(items, (SAID[one] for one in said), strict=True)
    return make_replied(items[0].project, "vanilla", found)


def test_errors_and_score_invariant_items_are_planned_apart(
    project: Project, browser: Client
) -> None:
    items = [*make_items(project, 40), *make_items(project, 10, "score-invariant")]
    make_said(items, "DU" * 20 + "U" * 10)
    errors, calm = planning.tabulate_rates(Run.objects.for_results())
    # Half of single items: Wilson's interval is 20 points wide at 93, 10 at 381, 5 at 1,533.
    assert (errors["kind"], errors["rate"], errors["design_effect"]) == ("errors", 0.5, 1)
    found = [errors[name] for name in planning.WIDTHS]
    assert found == pytest.approx([93, 381, 1533], rel=0.006)
    # None of ten is no rate to plan with, but its interval ends at z^2 / (10 + z^2) = .2775, for
    # which Wilson's interval is 20 points wide at 76 items: 1.96 (.2005 / 76 + .96 / 76^2)^.5 /
    # (1 + 3.84 / 76) = .0995.
    assert (calm["kind"], calm["rate"]) == ("invariant", 0)
    assert calm["planned_rate"] == calm["high"] == pytest.approx(0.2775, abs=1e-4)
    assert calm["items_10"] == pytest.approx(76, abs=1)
    assert (calm["cost_5"], calm["cost_reason"]) == (None, "no known cost")
    page = shown(browser, "plan/")
    assert [line[:3] for line in lines(page)] == [
        ["1 · vanilla judge", "Errors: detection", "50.0 % n 40"],
        ["1 · vanilla judge", "Score-invariant: false alarms", "0.0 % n 10"],
    ]
    assert [line[6] for line in lines(page)] == ["50.0 %", "27.8 % end of the interval"]
    assert "fewer than 10 hits or misses" in page
    _, invariant = links(page, "result=parsed")
    assert len(keys(browser, invariant)) == 10


def test_alike_items_of_a_question_ask_for_more_items(project: Project) -> None:
    items = [one for n in range(20) for one in make_items(project, 4, cluster=f"question {n}")]
    make_said(items, "DDDDUUUU" * 10)
    [row] = planning.tabulate_rates(Run.objects.for_results())
    # All of a question are alike: 4 x 20 / 19.
    assert (row["questions"], row["parsed"]) == (20, 80)
    assert row["design_effect"] == pytest.approx(4 * 20 / 19)
    assert row["items_10"] == pytest.approx(4 * 20 / 19 * 93, rel=0.06)


def test_a_number_that_is_reached_says_so(project: Project, browser: Client) -> None:
    make_said(make_items(project, 100), "DU" * 50)
    [line] = lines(shown(browser, "plan/"))
    assert line[7].startswith("93 reached") or line[7].startswith("94 reached")
    assert "reached" not in line[8]


def test_a_run_over_one_question_plans_nothing(project: Project, browser: Client) -> None:
    make_said(make_items(project, 3, cluster="one"), "DUD")
    [line] = lines(shown(browser, "plan/"))
    assert line[7:10] == ["— one question, or none"] * 3


def test_items_to_ask_allow_for_as_many_missing_replies_as_now(
    project: Project, browser: Client
) -> None:
    make_said(make_items(project, 200), "DUMM" * 50)
    [row] = planning.tabulate_rates(Run.objects.for_results())
    assert (row["total"], row["missing"], row["parsed"]) == (200, 100, 100)
    # The 93 of half of single items, of which half have a usable reply.
    assert row["items_10"] == pytest.approx(186, abs=2)
    [line] = lines(shown(browser, "plan/"))
    assert line[3] == "100 50.0 % of 200"
    # 200 were asked, 100 of them usable: enough for 10 points alone.
    assert ["reached" in one for one in line[7:10]] == [True, False, False]
    page = shown(browser, "plan/")
    assert "as large a share of missing replies as now" in page
    [missing] = links(page, "result=missing")
    assert keys(browser, missing)[:3] == ["item-3", "item-4", "item-7"]


def test_items_for_a_difference_allow_for_replies_missing_in_either_run(
    project: Project, browser: Client
) -> None:
    items = make_items(project, 80)
    make_said(items, "DDUUDDUM" * 10)
    make_said(items, "DUDUMMMD" * 10)
    [row] = planning.tabulate_differences(Run.objects.for_results())
    whole = make_items(project, 40)
    assert (row["asked"], row["n"]) == (80, 40)
    make_said(whole, "DDUU" * 10)
    make_said(whole, "DUDU" * 10)
    alike = planning.tabulate_differences(Run.objects.for_results().order_by("-number")[:2])[0]
    assert (alike["asked"], alike["n"], alike["difference"]) == (40, 40, row["difference"])
    for name in planning.POINTS:
        assert row[name] == 2 * alike[name]
    assert lines(shown(browser, "plan/?run=1&run=2&view=differences"))[0][2] == "40 of 80 asked"


def test_what_five_points_cost_is_told(project: Project) -> None:
    make_items(project, 4)
    run = make_run(project, make_endpoint("https://judge.invalid/v1"))
    lifecycle.plan_calls(run)
    answer(run)
    Reply.objects.update(cost="0.5")
    run.outcomes.filter(item__key__in=("item-1", "item-2")).update(result="detected")
    run.outcomes.filter(item__key__in=("item-3", "item-4")).update(result="undetected")
    [row] = planning.tabulate_rates(Run.objects.for_results())
    assert row["cost_per_item"] == 0.5
    assert row["cost_5"] == 0.5 * row["items_5"] == pytest.approx(190, rel=0.01)


def test_items_for_a_difference_follow_from_the_difference_now(
    project: Project, browser: Client
) -> None:
    items = make_items(project, 40)
    make_said(items, "DU" * 20)
    make_said(items, "DDUU" * 10)
    make_said(items, "DU" * 20)
    rows = planning.tabulate_differences(Run.objects.for_results())
    first, alike, _ = rows
    # A quarter each way: standard error e = (.5 / 39)^.5; of three pairs.
    assert (first["n"], first["questions"], first["difference"]) == (40, 40, 0)
    error, shows = (0.5 / 39) ** 0.5, first["shows"]
    flipped = 2.393980 * 40 * (error**2 + shows**2 / 40) ** 0.5
    assert 40 * shows - 1 == pytest.approx(flipped + 0.850935 * 40 * error, abs=1e-4)
    for name, points in planning.POINTS.items():
        n = first[name]
        reached = 2.393980 * (n * (0.5 / 39 * 40) + n * points**2 * n / n) ** 0.5
        reached += 0.8416 * (n * (0.5 / 39 * 40)) ** 0.5
        assert n * points - 1 == pytest.approx(reached, rel=0.01)
    assert (alike["items_5"], alike["reason"]) == (None, "all clusters differ alike")
    found = lines(shown(browser, "plan/?view=differences"))
    assert [line[:3] for line in found] == [
        ["1 · vanilla judge", "2 · vanilla judge-2", "40"],
        ["1 · vanilla judge", "3 · vanilla judge-3", "40"],
        ["2 · vanilla judge-2", "3 · vanilla judge-3", "40"],
    ]


def test_without_runs_there_is_nothing_to_plan() -> None:
    assert planning.tabulate_rates([]) == planning.tabulate_differences([]) == []


def test_more_samples_need_fewer_items_but_more_calls(project: Project, browser: Client) -> None:
    items = make_items(project, 40)
    both, half, none = scores(9, 5, 9, 5), scores(9, 5, 9, 9), scores(9, 9, 9, 9)
    said = zip(items, [both, half, half, none] * 10, strict=True)
    make_replied(project, "vanilla", said, samples=2)
    rows = {row["k"]: row for row in planning.tabulate_samples(Run.objects.for_results())}
    # Shares 1, 1/2, 1/2, 0: within 2 x 1/4 / 2, between 20/39 / 4 less half of that.
    assert rows[2]["within"] == pytest.approx(0.25)
    assert rows[2]["between"] == pytest.approx(5 / 39 - 0.125)
    assert [rows[k]["calls_5"] / k for k in (1, 2, 10)] == [rows[k]["items_5"] for k in (1, 2, 10)]
    # Of single items with one sample as many as Wilson's interval needs, with two fewer.
    assert rows[1]["items_5"] == pytest.approx(381, rel=0.03)
    assert rows[2]["items_5"] == pytest.approx(381 * 0.125 / 0.25, rel=0.05)
    assert rows[1]["calls_5"] < rows[2]["calls_5"] < rows[10]["calls_5"]
    assert rows[1]["items_5"] > rows[2]["items_5"] > rows[10]["items_5"]
    shown_lines = lines(shown(browser, "plan/?view=samples"))
    assert [line[3] for line in shown_lines] == ["1", "2", "3", "5", "10"]


def test_more_samples_are_planned_with_as_many_missing_replies_as_now(project: Project) -> None:
    items = make_items(project, 80)
    both, half, none = scores(9, 5, 9, 5), scores(9, 5, 9, 9), scores(9, 9, 9, 9)
    make_replied(
        project, "vanilla", zip(items, [both, half, half, none] * 10, strict=False), samples=2
    )
    lost = [both, half, half, none, *[scores(None, None, None, None)] * 4] * 10
    make_replied(project, "vanilla", zip(items, lost, strict=True), samples=2)
    found = planning.tabulate_samples(Run.objects.for_results())
    whole, lacking = ([row for row in found if row["run"] == number] for number in (1, 2))
    assert (lacking[0]["total"], lacking[0]["missing"], lacking[0]["parsed"]) == (80, 40, 40)
    assert [row["items_5"] for row in lacking] == [2 * row["items_5"] for row in whole]
    assert [row["calls_5"] for row in lacking] == [2 * row["calls_5"] for row in whole]


def test_before_the_first_run_a_plan_supposes_rates(project: Project, browser: Client) -> None:
    assert planning.tabulate_start(project) == []
    for n in range(10):
        make_items(project, 4, cluster=f"question {n}")
    row = next(
        row
        for row in planning.tabulate_start(project)
        if (row["rate"], row["correlation"]) == (0.5, 0.0)
    )
    assert (row["present"], row["questions"], row["per_question"]) == (40, 10, 4)
    # The 93 of single items, with Student's t for some 26 questions: 93 x (2.06 / 1.96)^2.
    assert row["items_10"] == pytest.approx(103, rel=0.04)
    # 50 against 30 %, s = .46: (1.96 (.46 + 4 x .04)^.5 + .8416 x .46^.5)^2 / .2^2 = 111.7 items of
    # four in a question, and some 2 / .2 more for the exact test.
    assert row["differ_20"] == pytest.approx(111.7 + 10, abs=1)
    assert 'No run is needed for <a href="?view=start">' in shown(browser, "plan/")
    found = lines(shown(browser, "plan/?view=start"))
    assert len(found) == 4 * 3
    assert found[3][:2] == ["50 %", "0.00"]


def test_the_difference_between_two_supposed_runs_is_part_of_the_variance(project: Project) -> None:
    for n in range(3):
        make_items(project, 1, cluster=f"question {n}")
    rows = {row["rate"]: row for row in planning.tabulate_start(project)}
    found = [rows[0.95][name] for name in planning.SUPPOSED_POINTS]
    # The exact McNemar test has less than 62 % power at 32, 87 and 311 items, the numbers for two
    # runs of 95 %; at these it has 80 to 86 %.
    assert found == [62, 163, 477]
    # 30 against 50 %, not 10 %: the second run is nearer to one half.
    assert rows[0.3]["differ_20"] == rows[0.5]["differ_20"]
