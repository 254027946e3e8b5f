"""Result pages of many runs, steps and slices: what is drawn, and what is left to tables."""

import json
import re
from itertools import cycle
from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client

from annotation.items import taxonomy
from annotation.models import Membership, Project, Role
from judging.results import cells, chart_parts
from judging.results.tables import blindspots
from judging.results.tables.scores import MOST_STEPS, fill_steps
from judging.results.views import pages
from tests.builders import make_member, make_project
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_items
from tests.judging.test_result_pages import lines, shown

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project("fbi")


@pytest.fixture
def browser(project: Project, client: Client) -> Client:
    member = make_member(project, role="researcher")
    assert member.account
    client.force_login(member.account)
    return client


def chart(page: str) -> dict[str, Any]:
    """The specification of the page's chart."""
    [found] = re.findall(r'<script id="figures-chart"[^>]*>(.*?)</script>', page)
    return dict(json.loads(found))


def heads(page: str) -> list[str]:
    found = re.findall(r"<th[^>]*scope=\"col\"[^>]*>(.*?)</th>", page)
    return [" ".join(re.sub(r"<[^>]*>", " ", one).split()) for one in found]


# --- how far scores moved -----------------------------------------------------------------------


def test_steps_that_no_score_made_have_their_place_in_the_chart(
    project: Project, browser: Client
) -> None:
    said = zip(make_items(project, 2), [scores(9, 5), scores(9, 9)], strict=True)
    make_replied(project, "vanilla", said)
    page = shown(browser, "by-category/?view=changes")
    assert heads(page)[-2:] == ["−4", "0"]
    assert chart(page)["layer"][0]["encoding"]["x"]["scale"]["domain"] == [-4, -3, -2, -1, 0]


def test_a_run_without_a_scale_has_no_steps(project: Project, browser: Client) -> None:
    items = make_items(project, 3)
    make_replied(project, "length", zip(items, cycle([scores(900, 1)]), strict=False))
    make_replied(project, "vanilla", zip(items, cycle([scores(9, 8)]), strict=False))
    page = shown(browser, "by-category/?view=changes")
    assert [line[1] for line in lines(page)] == ["2 · vanilla judge"]
    assert heads(page)[-1] == "−1"
    assert "Runs without a scale are not shown here" in page


def test_a_scale_of_many_steps_shows_those_that_scores_made() -> None:
    most = MOST_STEPS
    assert len(fill_steps([0, most - 1])) == most
    assert fill_steps([0, most]) == [0, most]
    assert fill_steps([-0.5, 2]) == [-0.5, 2]


# --- many runs ------------------------------------------------------------------------------------


def test_many_pairs_of_runs_are_compared_in_a_table(project: Project, browser: Client) -> None:
    items = make_items(project, 4)
    for _ in range(12):
        make_replied(project, "vanilla", zip(items, cycle([scores(9, 5)]), strict=False))
    page = shown(browser, "compare/?view=pairs")
    pairs = 12 * 11 // 2
    assert len(lines(page)) == pairs
    assert len(chart(page)["data"]["values"]) == chart_parts.MOST_BARS
    assert f"The first {chart_parts.MOST_BARS} of {pairs} pairs" in page


def test_every_run_has_a_plane_with_its_name_and_its_groups(
    project: Project, browser: Client
) -> None:
    items = [*make_items(project, 2), *make_items(project, 2, "score-invariant")]
    for _ in range(12):
        make_replied(project, "vanilla", zip(items, cycle([scores(9, 5)]), strict=False))
    drawn = chart(shown(browser, "sensitivity/"))
    assert [panel["title"]["text"][0] for panel in drawn["concat"]] == [
        f"{number} · vanilla" for number in range(1, 13)
    ]
    for panel in drawn["concat"]:
        assert {row["group"] for row in panel["data"]["values"]} == {"All", "Factual"}
    # A run alone has the whole chart.
    assert "layer" in chart(shown(browser, "sensitivity/?run=1"))


# --- slices ---------------------------------------------------------------------------------------


def test_a_run_without_a_blind_spot_shows_the_slices_with_the_least_p() -> None:
    rows = [{"blind": False, "p": p, "difference": 0.1} for p in (0.9, None, 0.2, 0.1, 0.5, 0.3)]
    told = blindspots._select_slices(rows, blindspots.SPOTS)
    assert [row["p"] for row in told] == [0.1, 0.2, 0.3, 0.5, 0.9]


def test_slices_that_are_missed_no_more_than_the_rest_are_near_to_nothing() -> None:
    rows = [{"blind": None, "p": None, "difference": one} for one in (-0.2, None, 0.1, 0.0)]
    assert blindspots._select_slices(rows, blindspots.SPOTS) == [rows[2]]
    # With none that is missed more, there are still slices to look at.
    assert blindspots._select_slices(rows[:2], blindspots.SPOTS) == rows[:2]


def test_the_parts_of_a_slice_stand_on_lines_of_their_own_in_the_chart(project: Project) -> None:
    items = make_items(project, 1)
    runs = [make_replied(project, "vanilla", [(items[0], scores(9, 5))]) for _ in range(2)]
    row = {"run": 2, "field": "category", "value": "spelling", "second_field": "topic"}
    row["second_value"] = "art"
    assert blindspots.slice_title(taxonomy.load_shipped(), row) == "Spelling · Topic: art"

    def name(row: dict[str, Any], *numbers: int) -> str:
        query = QueryDict("&".join(f"run={number}" for number in numbers))
        member = Membership(project=project, role=Role.RESEARCHER)
        return blindspots._name(pages.parse_query(member, "blind-spots", query), row)

    assert name(row, 1, 2) == f"Spelling: Topic art: 2 · vanilla: {runs[1].endpoint.name}"
    assert name({**row, "second_field": "", "second_value": ""}, 2) == "Spelling"


# --- what is written ------------------------------------------------------------------------------


def test_nought_has_no_sign() -> None:
    assert [cells.number_cell(value).text for value in (-0.001, -0.01, 0.0)] == [
        "0.00",
        "−0.01",
        "0.00",
    ]
    assert cells.points_cell(-0.0001, -0.1, 0.0001).interval == "−10.0 to 0.0"
    assert cells.points_cell(-0.0001).text == "0.0"


def test_a_share_stays_on_one_line() -> None:
    assert cells.share_cell(1, 4).note.split(" ") == ["25.0\u00a0%\u00a0of\u00a04"]
