"""The page of study 001: each view's figures, where they lead, and that all places say the same."""

import json
import re
from html import unescape
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from annotation.models import Item, Project
from judging.models import Outcome
from judging.results.tables import PAGES
from tests.annotation.test_agreement import people_of
from tests.builders import make_member, make_project
from tests.judging.builders_detecting import (
    judge,
    label_blind,
    make_sets,
    rate_endpoint,
    say_kinds,
    say_softly,
)
from tests.judging.builders_judging import make_endpoint, make_items

pytestmark = pytest.mark.django_db

INDEX = "/projects/lab/results/detector/"
VIEWS = [view.slug for view in PAGES["detector"].views]


@pytest.fixture
def project() -> Project:
    return make_project("lab", task_type="error-detection")


@pytest.fixture
def items(project: Project) -> list[Item]:
    """Twelve errors and six others of one task, of two kinds by turns."""
    made = make_sets(project, 12, 6)
    both = ["reasoning-correctness"], ["instruction-following"]
    say_kinds(made[:12], *[both[place % 2] for place in range(12)])
    return made


@pytest.fixture
def judged(project: Project, items: list[Item]) -> Project:
    """One evaluator asked by all four prompts and with steps, another by prompt 1-A alone, and a
    person."""
    a, b = (rate_endpoint(name, elo=1000 + place) for place, name in enumerate("ab"))
    said = {
        "detect-1a": "D" * 9 + "UUU" + "DUUUUU",
        "detect-1b": "D" * 6 + "U" * 6 + "U" * 6,
        "detect-2a": "D" * 9 + "UU-" + "DDUUUU",
        "detect-2b": "D" * 3 + "U" * 9 + "U" * 6,
        "detect-steps": "D" * 12 + "DDUUUU",
    }
    for slug, results in said.items():
        judge(items, results, slug, endpoint=a)
    judge(items, "D" + "U" * 17, "detect-1a", endpoint=b)
    label_blind(make_member(project), items[10:14], ["error"] * 2 + ["no_error"] * 2)
    say_softly(items[:4], people_of(project, "ann", "bob"), ["en", "ee", "nn", "ee"])
    return project


def test_a_mean_leads_to_the_lines_of_its_prompts(judged: Project, browser: Client) -> None:
    page = shown(browser, "")
    mean = page.split("mean of the four prompts")[1].split("</tr>")[0]
    found = {unescape(one) for one in re.findall(r'href="([^"]*)"', mean)}
    assert found == {"?rows=runs&run=1&run=2&run=3&run=4"}
    assert [line[0] for line in lines(shown(browser, found.pop()[1:]))][:4] == [
        "1 · detect-1a a", "2 · detect-1b a", "3 · detect-2a a", "4 · detect-2b a",
    ]  # fmt: skip


def test_over_different_items_nobody_is_sent_to_compare_which_has_no_detectors(
    items: list[Item], browser: Client
) -> None:
    a, b = (make_endpoint(f"http://{name}", name=name) for name in "ab")
    judge(items, "D" * 18, endpoint=a)
    judge(items[:9], "D" * 9, endpoint=b)
    page = shown(browser, "run=1&run=2")
    assert "cover different items: 9 to 18 items each, 9 in all of them." in page
    assert "None of them can be compared in pairs; choose runs over the same items" in page
    assert "The page Compare uses only" not in page
    answer = browser.get("/projects/lab/results/compare/?view=pairs&run=1&run=2")
    words = " ".join(answer.content.decode().split())
    assert "Compare needs two or more runs that judge perturbed answers" in words
    assert "see the pages Detector and Against people" in words


def shown(browser: Client, query: str) -> str:
    answer = browser.get(f"{INDEX}?{query}")
    assert answer.status_code == 200, query
    return " ".join(answer.content.decode().split())


def lines(page: str) -> list[list[str]]:
    from tests.judging.test_result_pages import lines as read

    return read(page)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_has_a_table_and_a_chart(judged: Project, browser: Client, view: str) -> None:
    found = shown(browser, f"view={view}&by=task&intervals=yes")
    assert lines(found)
    assert '<script id="figures-chart" type="application/json">' in found


def test_a_detector_is_the_mean_of_its_prompts_beside_chance_and_people(
    judged: Project, browser: Client
) -> None:
    found = lines(shown(browser, ""))
    heads = [line[0] for line in found]
    assert heads == [
        "a mean of the four prompts", "6 · detect-1a b",
        "Random alarms as often as errors occur", "Always error alarms on every item",
        "People mean over annotators, on blind items of the human baseline",
    ]  # fmt: skip
    mean, other, chance, _, people = found
    # Recall (9 + 6 + 9 + 3) / 4 of 12; one item without a verdict by one prompt of four.
    assert mean[1:3] == ["18", "0.2"]
    assert mean[5].startswith("56.2 %")
    # b detects one of 12: F1 2 / 13, below the share of errors, 12 of 18.
    assert other[3] == "15.4 % below random"
    assert chance[3:7] == ["66.7 %", "66.7 %", "66.7 %", "55.6 %"]
    assert people[1:4] == ["4", "0", "100.0 %"]


def test_each_run_has_its_bounds_and_leads_to_its_items(judged: Project, browser: Client) -> None:
    page = shown(browser, "rows=runs&by=task&run=3")
    [line, *_] = lines(page)
    # 9 of 12 errors and 2 of 6 others accused; one error without a verdict could be the tenth.
    assert line[1] == "3 · detect-2a a"
    assert line[6] == "75.0 % 75.0 % to 83.3 % with missing"
    here = "/projects/lab/runs/3/?slice=task%3Dsums&amp;items=own&amp;"
    assert f'href="{here}truth=error&amp;counted=yes#outcomes"' in page
    assert f'href="{here}result=missing&amp;counted=yes#outcomes"' in page


def test_the_list_behind_a_figure_has_as_many_items_as_the_figure(
    judged: Project, items: list[Item], browser: Client
) -> None:
    Item.objects.filter(pk=items[1].pk).update(duplicate_of=items[0])
    line = lines(page := shown(browser, "rows=runs&by=task&run=3"))[0]
    [link] = re.findall(r'/projects/lab/runs/3/(\?[^"#]*truth=error[^"#]*)', page)[:1]
    found = browser.get(f"/api/v1/projects/lab/runs/3/outcomes/{unescape(link)}").json()
    assert (line[2], found["count"]) == ("17", 11)


@pytest.mark.parametrize(
    ("query", "n"),
    [
        ("slice=task%3Dsums&truth=error", 12),
        ("slice=task%3Dother", 0),
        ("kind=error_type:reasoning-correctness&result=detected", 5),
        ("kind=error_type:", 6),
    ],
)
def test_items_are_found_by_field_truth_and_kind(
    judged: Project, browser: Client, query: str, n: int
) -> None:
    # Run 1 detects the first nine, of which five are of the first kind; six items have no kind.
    found = browser.get(f"/api/v1/projects/lab/runs/1/outcomes/?{query}").json()
    assert found["count"] == n


def test_recall_is_shown_by_kind_of_error(judged: Project, browser: Client) -> None:
    found = lines(shown(browser, "view=kinds&run=6"))
    # b detects item 1 alone, which is of the first kind.
    assert [line[1:] for line in found] == [
        ["Instruction following", "6", "0", "0", "0.0 %"],
        ["Reasoning correctness", "6", "0", "1", "16.7 %"],
    ]


def test_the_order_of_the_options_is_recall_of_a_minus_b(judged: Project, browser: Client) -> None:
    line, mean = lines(shown(browser, "view=prompts&bias=order-2"))
    # Recall 9 of 12 by 2-A, 3 of 12 by 2-B; precision 9 of 11 and 3 of 3.
    assert line == [
        "a", "18", "0.2", "75.0 %", "25.0 %", "+50.0",
        "81.8 %", "100.0 %", "−18.2",
    ]  # fmt: skip
    assert mean[0] == "Mean over 1 pair of evaluator and group"
    assert mean[5] == "+50.0 ± 0.0"


def test_steps_stand_against_prompt_1a_in_points_with_stars(
    judged: Project, browser: Client
) -> None:
    found = {line[0]: line for line in lines(shown(browser, "view=changes"))}
    steps = found["5 · detect-steps a"]
    # Recall 9 of 12 to 12 of 12: up in nearly every draw. Precision 9 of 10 to 12 of 14.
    assert steps[1:3] == ["1 · detect-1a a", "18"]
    assert steps[5] == "+25.0* 75.0 % to 100.0 %"
    assert steps[4] == "−4.3 90.0 % to 85.7 %"
    assert "one-sided" in shown(browser, "view=changes")


def test_items_in_both_runs_lead_to_these(
    judged: Project, items: list[Item], browser: Client
) -> None:
    # The first item is held for something else than when run 2 judged it.
    Outcome.objects.filter(run__number=2, item=items[0]).update(truth="no_error")
    page = shown(browser, "view=changes&by=task")
    [line] = [line for line in lines(page) if line[1] == "2 · detect-1b a"]
    assert line[3] == "17 1 in one only"
    [address] = re.findall(r'href="([^"]*runs/2/[^"]*shared_with=1[^"]*)"', page)
    [query] = re.findall(r"\?([^#]*)", address.replace("&amp;", "&"))
    found = browser.get(f"/api/v1/projects/lab/runs/2/outcomes/?{query}").json()
    assert [one["item"] for one in found["results"]] == [item.key for item in items[1:]]
    # The other way round the first item is not counted there.
    found = browser.get("/api/v1/projects/lab/runs/3/outcomes/?shared_with=2").json()
    assert found["count"] == 17


def test_other_charts_of_the_same_figures(judged: Project, browser: Client) -> None:
    page = shown(browser, "chart=plane")
    assert "Dashed lines: equal F1" in page
    assert '"F1 80%"' in page


def test_page_api_file_and_command_say_the_same(
    judged: Project, browser: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "run=1&run=2&by=task"
    for table in ("detector", "detector_ranges", "error_kinds", "changes", "bias"):
        call_command("results", table, project="lab", by="task", run=[1, 2], format="json")
        printed: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert printed["rows"]
        assert browser.get(f"/api/v1/projects/lab/results/{table}/?{query}").json() == printed
        assert browser.get(f"/projects/lab/results/{table}.json?{query}").json() == printed
        if table == "detector":
            of_page = lines(shown(browser, f"rows=runs&{query}"))
            told = [f"{100 * row['recall']:.1f} %" for row in printed["rows"] if row["run"]]
            assert [line[6][: len(one)] for line, one in zip(of_page, told, strict=False)] == told


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_without_figures_says_what_to_do(
    project: Project, items: list[Item], browser: Client, view: str
) -> None:
    endpoint = make_endpoint("http://c", name="c")
    run = judge(items, "D" * 18, "detect-steps", endpoint=endpoint)
    run.outcomes.update(result="pending")
    assert "No figures here yet" in shown(browser, f"view={view}")


def test_words_of_people_and_names_are_never_markup(
    project: Project, items: list[Item], browser: Client
) -> None:
    say_kinds(items[:1], ["<script>alert(1)</script>"])
    Item.objects.filter(pk=items[0].pk).update(fields={"task": "<b>x</b>"})
    judge(items, "D" * 18, endpoint=make_endpoint("http://c", name="c"))
    page = shown(browser, "view=kinds&by=task")
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "<b>x</b>" not in page


def test_a_detector_calls_no_items_score_invariant_or_labelled_as_errors(
    project: Project, browser: Client
) -> None:
    """It is not told which items were meant to be score-invariant."""
    items = make_items(project, 3, "no_error", category="", ability="score-invariant")
    judge(items, "DU-", endpoint=rate_endpoint("a"))
    page = browser.get("/projects/lab/results/missing/?by=ability").content.decode()
    assert "Score-invariant" in page
    assert "labelled as errors" not in page
