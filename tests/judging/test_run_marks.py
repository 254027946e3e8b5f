"""Which runs stand side by side where nobody names any: the same everywhere, the others marked."""

import json
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from annotation.models import Item, Job, Project
from judging.models import Run
from judging.results import run_marks
from judging.results.tables import left_out
from judging.runs import canaries, lifecycle
from judging.runs.lifecycle import RunConfig
from judging.runs.run_config import RunOverrides
from tests.builders import make_member, make_project
from tests.judging.builders_decided import make_endpoint, make_replied, scores
from tests.judging.builders_judging import api_client, make_items, make_run, make_strategy
from tests.judging.test_result_pages import lines, shown

pytestmark = pytest.mark.django_db

USUAL = [2, 6]
MARKED = {
    1: "superseded by run 2",
    3: "canary",
    4: "part of the items",
    5: "cancelled",
    7: "of run 1, superseded by run 2",
    8: "archived",
}


def replied(project: Project, items: list[Item], slug: str = "vanilla", **values: Any) -> Run:
    """A run that detects every error; `is_part` is decided when a run draws its items."""
    is_part = values.pop("is_part", False)
    said = ('{"flag": true}',) if slug == "explanation-check" else scores(9, 5)
    run = make_replied(project, slug, ((item, said) for item in items), **values)
    Run.objects.filter(pk=run.pk).update(is_part=is_part)
    return run


@pytest.fixture
def every(project: Project) -> Project:
    """A run of each kind over four items, one of them over half of them: two stand side by side."""
    items, gpt = make_items(project, 4), make_endpoint("gpt")
    first = replied(project, items, endpoint=gpt)
    replied(project, items, endpoint=gpt)
    replied(project, items, endpoint=gpt, occasion="canary 2026-01-01 a")
    replied(project, items[:2], endpoint=make_endpoint("claude"), is_part=True)
    replied(project, items, endpoint=make_endpoint("qwen"), state=Run.State.CANCELLED)
    replied(project, items, endpoint=make_endpoint("gemma"))
    replied(project, items, "explanation-check", endpoint=gpt, sources=[first], base=first)
    replied(project, items, endpoint=make_endpoint("phi"), archived_at=timezone.now())
    return project


def by_number(project: Project) -> dict[int, Run]:
    return {run.number: run for run in run_marks.load_marked_runs(project)}


def test_every_other_run_says_why_it_stands_aside(every: Project) -> None:
    said = {n: ", ".join(m.words for m in run.marks) for n, run in by_number(every).items()}
    assert {n: words for n, words in said.items() if words} == MARKED
    assert [run.number for run in run_marks.select_default(by_number(every).values())] == USUAL


def told(rows: list[dict[str, Any]]) -> list[int]:
    return list(dict.fromkeys(row["run"] for row in rows))


def test_page_api_file_command_methods_and_archive_show_the_same_runs(
    every: Project, browser: Client, program: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    page = shown(browser, "overview/")
    assert [line[0].split(" ·")[0] for line in lines(page)] == ["2", "6"]
    api = program.get("/api/v1/projects/fbi/results/undetected/?by=").json()
    file = browser.get("/projects/fbi/results/undetected.json?by=").json()
    call_command("results", "undetected", "--project", "fbi", "--by", "")
    said = capsys.readouterr()
    printed = json.loads(said.out)
    assert "Left out: 1 canary, 1 over part of the items, 1 not finished" in said.err
    assert told(api["rows"]) == told(file["rows"]) == told(printed["rows"]) == USUAL
    methods = program.get("/api/v1/projects/fbi/methods/").json()["text"]
    assert [n for n in range(1, 9) if f"Run {n} " in methods] == USUAL
    lead = make_member(every, role="lead")
    assert (
        api_client(lead)
        .post("/api/v1/projects/fbi/archives/", {}, content_type="application/json")
        .json()["runs"]
        == USUAL
    )
    assert lead.account
    browser.force_login(lead.account)
    browser.post("/projects/fbi/archives/")
    assert Job.objects.order_by("-pk")[0].result["runs"] == USUAL


def test_the_page_says_what_it_leaves_out_and_leads_to_all(every: Project, browser: Client) -> None:
    page = shown(browser, "overview/")
    assert "These 2 runs evaluated the same 4 items." in page
    left = "1 canary, 1 over part of the items, 1 not finished, 1 superseded"
    assert f"Not shown: {left}, 1 based on one of these." in page
    everyone = "&amp;".join(f"run={n}" for n in range(1, 8))
    assert f'href="?{everyone}"' in page
    assert "part of the items</span>" in page


def test_runs_that_an_address_names_are_shown_and_marked(every: Project, browser: Client) -> None:
    page = shown(browser, "overview/?run=1&run=3&run=4&run=8")
    heads = [line[0] for line in lines(page)]
    assert heads == [
        "1 · vanilla gpt · superseded by run 2",
        "3 · vanilla gpt · canary",
        "4 · vanilla claude · part of the items",
        "8 · vanilla phi · archived",
    ]
    assert "These 4 runs cover different items: 2 to 4 items each" in page
    assert "2 in all of them." in page
    assert "The page Compare uses only the items that both runs of a pair share." in page
    assert "Show the default runs" in page
    # A chart has no notes: its legend says the same.
    chart = browser.get("/projects/fbi/results/overview/chart.json?run=4").content.decode()
    assert "4 · vanilla · claude · part of the items" in chart


def test_duplicates_make_no_difference_where_no_figure_counts_them(
    project: Project, browser: Client, program: Client
) -> None:
    items = make_items(project, 4)
    repeats = make_items(project, 2, duplicate_of=items[0])
    replied(project, items, endpoint=make_endpoint("gpt"))
    replied(project, [*items, *repeats], endpoint=make_endpoint("claude"))
    same = "These 2 runs evaluated the same 4 items."
    for page in (
        "overview/",
        "compare/",
        "sensitivity/",
        "cost/",
        "by-category/?view=counts&by=ability",
    ):
        assert same in shown(browser, page), page
    # By ability and category duplicates have lines of their own.
    apart = "cover different items: 4 to 6 items each, 4 in all of them."
    assert apart in shown(browser, "by-category/")
    assert apart in shown(browser, "by-category/?view=counts&by=ability,category")
    assert "Run 2 · vanilla · claude: 6 items." in shown(browser, "by-category/?run=2")
    assert "Run 2 · vanilla · claude: 4 items." in shown(browser, "overview/?run=2")
    rows = program.get("/api/v1/projects/fbi/results/left_out/").json()["rows"]
    names = ("items", "shared", "items_with_duplicates", "shared_with_duplicates", "other_revision")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (4, 4, 4, 4, 0),
        (4, 4, 6, 4, 0),
    ]


@pytest.mark.parametrize(
    ("task", "slug", "value"),
    [("error-detection", "detect-1a", "error"), ("rating", "likert", "4")],
)
def test_figures_of_detectors_and_of_ratings_count_no_duplicates(
    task: str, slug: str, value: str
) -> None:
    project = make_project("other", task_type=task)
    first = make_items(project, 3, value, fields={"human_a": 1})
    repeats = make_items(project, 1, value, duplicate_of=first[0])
    run = make_run(project, make_endpoint("gpt"), slug, with_duplicates=True)
    run.outcomes.update(result="detected")
    assert run.outcomes.count() == len(first) + len(repeats)
    [row] = left_out.tabulate_left_out([run])
    assert (row["items"], row["shared"], row["items_with_duplicates"]) == (3, 3, 4)


def test_where_no_run_is_usual_all_are_shown_and_said_to_be(
    project: Project, browser: Client
) -> None:
    items = make_items(project, 4)
    replied(project, items[:1], is_part=True)
    replied(project, items, state=Run.State.PAUSED)
    page = shown(browser, "overview/")
    assert [line[0] for line in lines(page)] == [
        "1 · vanilla judge · part of the items",
        "2 · vanilla judge-2 · paused",
    ]
    assert "There is no finished run over all items, so all runs are shown." in page


def test_a_single_run_is_named_with_its_endpoint(project: Project, browser: Client) -> None:
    replied(project, make_items(project, 2))
    page = shown(browser, "by-category/?view=counts")
    assert "Run 1 · vanilla · judge: 2 items." in page
    assert "Show the default runs" not in page


def test_other_choices_of_a_run_supersede_nothing(project: Project) -> None:
    items, gpt = make_items(project, 2), make_endpoint("gpt")
    replied(project, items, endpoint=gpt)
    replied(project, items, endpoint=gpt, own=RunOverrides(parameters={"temperature": 1}))
    replied(project, items, endpoint=gpt, samples=2)
    assert not any(run.marks for run in run_marks.load_marked_runs(project))
    # A later one that was stopped, or is over less, supersedes nothing either.
    replied(project, items, endpoint=gpt, state=Run.State.CANCELLED)
    replied(project, items[:1], endpoint=gpt, is_part=True)
    assert [
        run.number for run in run_marks.select_default(run_marks.load_marked_runs(project))
    ] == [1, 2, 3]


def test_a_run_knows_whether_there_were_more_items_when_it_began(project: Project) -> None:
    items = make_items(project, 3)
    make_items(project, 1, duplicate_of=items[0])
    assert not make_run(project).is_part
    assert make_run(project, limit=2).is_part
    assert make_run(project, items={items[0].pk}).is_part
    assert not make_run(project, limit=3).is_part
    # Its own items are by now a part of those that there are.
    make_items(project, 2)
    clone = lifecycle.clone_run(Run.objects.get(number=1), None)
    assert clone.is_part
    assert lifecycle.clone_run(Run.objects.get(number=2), None, as_pinned=True).is_part
    first = canaries.start_canary(
        project,
        strategy=make_strategy("rouge-l"),
        endpoint=clone.endpoint,
        config=RunConfig(seed=1, limit=1),
    )
    assert by_number(project)[first.number].marks[0].words == "canary"


def test_what_all_shown_runs_share_is_no_part_of_their_names(
    project: Project, browser: Client
) -> None:
    items = make_items(project, 4)
    for _ in range(2):
        replied(project, items, is_part=True)
    both, one = (lines(shown(browser, f"overview/?{runs}")) for runs in ("run=1&run=2", "run=1"))
    assert [line[0] for line in both] == ["1 · vanilla judge", "2 · vanilla judge-2"]
    assert one[0][0] == "1 · vanilla judge · part of the items"
