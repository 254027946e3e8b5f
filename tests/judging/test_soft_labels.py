"""A detector against the share of people who say error."""

import re
from html import unescape
from typing import Any

import numpy as np
import pytest
from django.test import Client
from scipy import stats as scipy_stats

from annotation.models import Item, Membership, Project
from judging.models import Run
from judging.results import tables
from tests.annotation.test_agreement import people_of
from tests.builders import make_member, make_project
from tests.judging.builders_detecting import judge_all, make_sets, make_unlabelled, say_softly
from tests.judging.builders_judging import make_endpoint
from tests.judging.test_result_pages import lines

pytestmark = pytest.mark.django_db

# What three people say of each item, and what the run says. The last two have one vote or none.
SAID = ("eee", "een", "enn", "nnn", "en?", "ee", "e??", "")
RUN = "DDUU-UDD"


@pytest.fixture
def project() -> Project:
    return make_project("lab", task_type="error-detection", overlap=3)


@pytest.fixture
def people(project: Project) -> list[Membership]:
    return people_of(project, "ann", "bob", "cid")


def judge(items: list[Item], results: str, **values: Any) -> Run:
    endpoint = make_endpoint("https://judge.invalid/v1")
    return judge_all(items, results, "detect-1a", endpoint=endpoint, **values)


def rows(project: Project, table: str, *by: str) -> list[dict[str, Any]]:
    runs = list(Run.objects.in_project(project).for_results())
    return list(tables.RESULT_TABLES[table].rows(project, runs, by))


@pytest.fixture
def judged(project: Project, people: list[Membership]) -> list[Item]:
    """Four items with a final label, four on which people have not agreed."""
    items = [*make_sets(project, 2, 2), *make_unlabelled(project, 4)]
    judge(items, RUN)
    say_softly(items, people, SAID)
    return items


def test_figures_by_hand(project: Project, judged: list[Item]) -> None:
    [row] = rows(project, "soft_labels")
    # Six items have two votes for error or not; of en? the run said nothing.
    assert (row["total"], row["missing"], row["n"]) == (6, 1, 5)
    shares, verdicts = np.array([1, 2 / 3, 1 / 3, 0, 1]), np.array([1, 1, 0, 0, 0])
    assert row["labels"] == pytest.approx((3 + 3 + 3 + 3 + 2) / 5)
    assert row["share"] == pytest.approx(3 / 5)
    assert row["alarms"] == pytest.approx(2 / 5)
    # 1, 2/3, 2/3, 1 and 0 of the people agree with the run.
    assert row["agreement"] == pytest.approx((1 + 2 / 3 + 2 / 3 + 1 + 0) / 5)
    # All three pairs of people agree, or one of three.
    assert row["people"] == pytest.approx((1 + 1 / 3 + 1 / 3 + 1 + 1) / 5)
    assert row["highest"] == pytest.approx((1 + 2 / 3 + 2 / 3 + 1 + 1) / 5)
    assert row["pearson"] == pytest.approx(scipy_stats.pearsonr(shares, verdicts).statistic)
    assert row["rho"] == pytest.approx(scipy_stats.spearmanr(shares, verdicts).statistic)
    assert row["brier"] == pytest.approx(((shares - verdicts) ** 2).mean())
    assert row["agreement_low"] < row["agreement"] < row["agreement_high"]
    assert (row["pearson_low"], row["pearson_reason"]) == (None, "under 10 clusters")


def test_errors_are_called_by_how_many_people_say_error(
    project: Project, judged: list[Item]
) -> None:
    found = {row["said"]: row for row in rows(project, "soft_shares")}
    counts = {said: (row["n"], row["missing"], row["rate"]) for said, row in found.items()}
    # Everybody: eee and ee, of which the run called one an error.
    assert counts == {
        "nobody": (1, 0, 0.0),
        "minority": (1, 0, 0.0),
        "half": (0, 1, None),
        "majority": (1, 0, 1.0),
        "everybody": (2, 0, 0.5),
    }
    assert list(found) == ["nobody", "minority", "half", "majority", "everybody"]
    assert found["half"]["reason"] == "no items"


def test_samples_count_by_the_share_that_says_error(
    project: Project, people: list[Membership]
) -> None:
    items = make_unlabelled(project, 2)
    run = judge(items, "DU")
    say_softly(items, people, ("een", "nnn"))
    run.outcomes.filter(item=items[0]).update(share=0.6)
    [row] = rows(project, "soft_labels")
    assert row["alarms"] == pytest.approx(0.3)
    assert row["agreement"] == pytest.approx((0.6 * 2 / 3 + 0.4 * 1 / 3 + 1) / 2)


def test_labels_given_in_sight_of_others_and_of_old_texts_do_not_count(
    project: Project, people: list[Membership]
) -> None:
    items = make_unlabelled(project, 3)
    judge(items, "DDD")
    say_softly(items, people, ("eee", "een", "enn"))
    items[0].labels.filter(member__in=people[1:]).update(informed=True)
    items[1].duplicate_of = items[2]
    items[1].save()
    [row] = rows(project, "soft_labels")
    assert (row["n"], row["share"]) == (1, pytest.approx(1 / 3))


def test_groups_and_intervals_of_many_items(project: Project, people: list[Membership]) -> None:
    sums, facts = make_unlabelled(project, 12), make_unlabelled(project, 3, task="facts")
    judge([*sums, *facts], "DDUUDU" * 2 + "DDU")
    say_softly([*sums, *facts], people, ("een", "eee", "nnn") * 5)
    found = {row["task"]: row for row in rows(project, "soft_labels", "task")}
    assert {task: row["n"] for task, row in found.items()} == {"sums": 12, "facts": 3}
    for name in ("pearson", "rho", "brier"):
        assert found["sums"][f"{name}_low"] < found["sums"][name] < found["sums"][f"{name}_high"]
        assert "rough" in found["sums"][f"{name}_reason"]


def test_a_run_that_always_says_the_same_has_no_correlation(
    project: Project, people: list[Membership]
) -> None:
    items = make_unlabelled(project, 2)
    judge(items, "DD")
    say_softly(items, people, ("een", "nnn"))
    [row] = rows(project, "soft_labels")
    assert (row["pearson"], row["pearson_reason"]) == (None, "one side is constant")
    assert row["agreement"] == pytest.approx((2 / 3 + 0) / 2)


def show(client: Client, project: Project, query: str = "") -> str:
    member = make_member(project, role="researcher")
    assert member.account
    client.force_login(member.account)
    answer = client.get(f"/projects/lab/results/detector/?view=soft{query}")
    assert answer.status_code == 200
    return unescape(" ".join(answer.content.decode().split()))


@pytest.mark.usefixtures("charts_fit_their_schema")
@pytest.mark.parametrize("query", ["", "&show=shares"])
def test_the_page_shows_both_tables_each_with_a_chart(
    project: Project, judged: list[Item], client: Client, query: str
) -> None:
    page = show(client, project, query)
    found = lines(page)
    assert '<script id="figures-chart" type="application/json">' in page
    if query:
        assert [line[1] for line in found] == [
            "Nobody", "A minority", "Half", "A majority", "Everybody"
        ]  # fmt: skip
        assert re.match(r"50\.0 %", found[-1][2])
        # No list shows just the items without a verdict, so their number leads nowhere.
        assert found[2][2].endswith("n 0, 1 missing")
        assert 'href=""' not in page
    else:
        [line] = found
        assert line[1:6] == ["5", "1", "2.80", "60.0 %", "40.0 %"]
        assert line[6].startswith("66.7 %")


def test_a_page_without_several_labels_says_what_to_do(project: Project, client: Client) -> None:
    judge(make_sets(project), "DDUUUU")
    assert "Set more annotators per item under Settings" in show(client, project)
