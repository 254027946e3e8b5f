"""Precision and recall against outside ratings: study 001's table 9 from what it prints, and the
tables and the page from runs."""

import io
import json
import re
from contextlib import redirect_stdout
from html import unescape
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from annotation.models import Project
from judging.models import Endpoint, Run
from judging.results import cache
from judging.results.columns import Table
from judging.results.tables import strength
from tests.builders import make_member, make_project
from tests.judging.builders_detecting import judge, make_sets, rate_endpoint
from tests.judging.published_tables import DETECTORS, RATINGS, STRENGTH, rows
from tests.judging.test_same_everywhere import plain

SET = ("task", "response_model")
PROMPTS = ("detect-1a", "detect-1b", "detect-2a", "detect-2b")


def printed_points(nudged: dict[str, float] | None = None) -> list[dict[str, Any]]:
    """The points of table 4 with the ratings of table 10; some models' recall is changed by a
    number of points, within the rounding."""
    means = [row for row in rows(DETECTORS) if (row["table"], row["strategy"]) == ("4", "mean")]
    return [
        {
            "strategy": "mean",
            "rating": rated["rating"],
            **{name: row[name] for name in SET},
            "endpoint": row["model"],
            "rating_value": float(rated["value"]),
            "precision": float(row["precision"]) / 100,
            "recall": (float(row["recall"]) + (nudged or {}).get(row["model"], 0)) / 100,
        }
        for row in means
        for rated in rows(RATINGS)
        if rated["model"] == row["model"]
    ]


@pytest.fixture(scope="module")
def correlated() -> list[dict[str, Any]]:
    return strength.correlate(printed_points(), SET)


def find(found: list[dict[str, Any]], printed: dict[str, str]) -> dict[str, Any]:
    wanted = {name: printed[name] for name in ("rating", *SET)} | {"measure": printed["figure"]}
    [row] = [row for row in found if wanted.items() <= row.items()]
    return row


# Where models are tied in a printed recall, or it lies on the edge of rounding.
NUDGES = {"pearson": {"claude-3-opus-20240229": -0.04}, "rho": {"gpt-4-0613": 0.01}}
TABLE_9 = rows(STRENGTH)


@pytest.mark.parametrize("printed", TABLE_9, ids=lambda row: "-".join([*row.values()][2:6]))
def test_table_9(correlated: list[dict[str, Any]], printed: dict[str, str]) -> None:
    found = find(correlated, printed)
    assert (found["n"], found["left_out"]) == (int(printed["n"]), 12 - int(printed["n"]))
    differing = set()
    for kind in ("pearson", "rho"):
        if f"{found[kind]:.2f}" != printed[kind]:
            differing.add(kind)
            nudged = strength.correlate(printed_points(NUDGES[kind]), SET)
            assert f"{find(nudged, printed)[kind]:.2f}" == printed[kind]
            assert printed["reason"]
        assert (found[f"{kind}_p"] < 0.05) == (kind in printed["starred"].split(";"))
        assert found[f"{kind}_low"] < found[kind] < found[f"{kind}_high"]
        # Interval and p are made in different ways, but agree where p is not near 0.05.
        if not 0.02 < found[f"{kind}_p"] < 0.1:
            is_apart = found[f"{kind}_low"] > 0 or found[f"{kind}_high"] < 0
            assert is_apart == (found[f"{kind}_p"] < 0.05)
    assert len(differing) == bool(printed["reason"])


def test_table_9_has_48_correlations_of_which_three_need_what_was_not_printed() -> None:
    assert len(TABLE_9) == 24
    assert sum(bool(row["reason"]) for row in TABLE_9) == 3


@pytest.fixture
def project(db: None) -> Project:
    """Five evaluators over four errors and two others of one task: recall 1/4, 2/4 ... falls in the
    order of Elo but for one step; the last has no rating."""
    project = make_project("found", task_type="error-detection")
    items = make_sets(project)
    results = ("DDDDDD", "DDDUUD", "DDUUUD", "DDDUUU", "DUUUUU")
    for number, verdicts in enumerate(results):
        ratings = {"elo": 1000.0 + 10 * number} if number < 4 else {}
        if number == 0:
            ratings["mmlu"] = 60.0
        judge(items, verdicts, endpoint=rate_endpoint(f"e{number}", **ratings))
    return project


def tabulated(table: str, *words: str) -> list[dict[str, Any]]:
    with redirect_stdout(io.StringIO()) as out:
        call_command("results", table, "--project", "found", *words, "--format", "json")
    found: list[dict[str, Any]] = json.loads(out.getvalue())["rows"]
    return found


def test_each_rating_is_correlated_over_the_evaluators_that_have_it(project: Project) -> None:
    found = {(row["rating"], row["measure"]): row for row in tabulated("strength", "--by", "task")}
    assert found.keys() == {
        (rating, measure) for rating in ("elo", "mmlu") for measure in ("precision", "recall")
    }
    recall = found["elo", "recall"]
    assert (recall["n"], recall["left_out"], recall["strategy"]) == (4, 1, "detect-1a")
    # Elo 1 2 3 4 against recall 4 3 2 3 (in quarters): deviations -1.5 -.5 .5 1.5 and 1 0 -1 0 make
    # -1.5 - .5 = -2, squares 5 and 2: -2 / sqrt 10.
    assert recall["pearson"] == pytest.approx(-2 / 10**0.5)
    # Ranks 4 2.5 1 2.5: deviations 1.5 0 -1.5 0 make -2.25 - .75 = -3, squares 5 and 4.5.
    assert recall["rho"] == pytest.approx(-3 / 22.5**0.5)
    one = found["mmlu", "recall"]
    assert (one["n"], one["left_out"], one["pearson"], one["pearson_p"]) == (1, 4, None, None)
    assert one["pearson_reason"] == one["rho_reason"] == "fewer than 4 evaluators"


def test_points_are_those_of_the_detector_table(project: Project) -> None:
    items = list(project.items.order_by("position"))
    endpoint = Endpoint.objects.get(name="e0")
    for strategy in PROMPTS:
        judge(items, "DD-UUD", strategy, endpoint=endpoint)
    rates = {
        (row["strategy"], row["endpoint"]): row
        for row in tabulated("detector", "--by", "task")
        if row["endpoint"]
    }
    ends = {
        (row["strategy"], row["endpoint"], row["figure"]): row
        for row in tabulated("detector_ranges", "--by", "task")
    }
    points = tabulated("strength_points", "--by", "task")
    # Those of e0 with two ratings; its first run counts no more.
    assert len(points) == 4 + 5 * 2
    for row in points:
        of = row["strategy"], row["endpoint"]
        for name in ("precision", "recall"):
            assert row[name] == rates[of][name]
            assert row[f"{name}_low"] == ends[*of, name]["low"]
            assert row[f"{name}_high"] == ends[*of, name]["high"]
    [last] = [row for row in points if row["endpoint"] == "e4"]
    assert (last["rating"], last["rating_value"], last["recall"]) == (None, None, 0.25)


def test_a_mean_without_all_prompts_has_no_point_and_says_why(project: Project) -> None:
    items = list(project.items.order_by("position"))
    for name in ("e0", "e1"):
        judge(items, "DDDDDD", "detect-1b", endpoint=Endpoint.objects.get(name=name))
    means = [row for row in tabulated("strength_points") if row["strategy"] == "mean"]
    assert {(row["recall"], row["reason"]) for row in means} == {
        (None, "no run of detect-2a, detect-2b")
    }
    found = [row for row in tabulated("strength") if row["strategy"] == "mean"]
    assert {(row["n"], row["left_out"]) for row in found} == {(0, 2)}


def shown(client: Client, path: str = "") -> str:
    answer = client.get(f"/projects/found/results/detector/?view=strength{path}")
    assert answer.status_code == 200
    return unescape(" ".join(answer.content.decode().split()))


@pytest.fixture
def reader(project: Project, client: Client) -> Client:
    member = make_member(project, role="researcher")
    assert member.account
    client.force_login(member.account)
    return client


@pytest.mark.usefixtures("charts_fit_their_schema")
def test_the_page_shows_each_rating_with_its_points(project: Project, reader: Client) -> None:
    page = shown(reader, "&by=task&rating=elo")
    table = page[page.index("<tbody") : page.index("</table>")]
    lines = [
        [plain(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", line)]
        for line in re.findall(r"<tr.*?</tr>", table)
    ]
    assert [line[:6] for line in lines] == [
        ["sums", "detect-1a", "elo", "Precision", "4", "1"],
        ["sums", "detect-1a", "elo", "Recall", "4", "1"],
    ]
    assert lines[1][6].startswith("−0.63")
    drawn = json.loads(page.split('id="figures-chart" type="application/json">')[1].split("<")[0])
    values = drawn["data"]["values"]
    points = {(one["evaluator"], one["figure"]): (one["rating"], one["value"]) for one in values}
    assert points["e2", "Recall"] == (1020, 0.5)
    assert len(points) == 8
    assert ">mmlu<" in page


def test_a_page_without_ratings_says_where_to_enter_them(project: Project, reader: Client) -> None:
    Endpoint.objects.update(ratings=[])
    assert "A site admin enters ratings on the page of an endpoint" in shown(reader)


@pytest.mark.parametrize("table", [strength.STRENGTH, strength.POINTS])
def test_a_changed_rating_makes_stored_figures_stale(project: Project, table: Table) -> None:
    def fingerprint() -> str:
        return cache.compute_fingerprint(project, list(Run.objects.for_results()), table)

    before = fingerprint()
    assert fingerprint() == before
    endpoint = Endpoint.objects.get(name="e0")
    endpoint.ratings[0]["value"] = 900.0
    endpoint.save()
    assert fingerprint() != before
