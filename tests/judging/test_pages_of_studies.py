"""Where one finds what the studies print: each table and figure leads to the view that makes it,
with its grouping and the runs of its strategies."""

import re
from collections import defaultdict
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from annotation.models import Project
from judging.results.tables import PAGES
from judging.results.views import pages
from tests.builders import make_member, make_project
from tests.judging import published_tables
from tests.judging.builders_decided import make_replied, scores, verdicts
from tests.judging.builders_detecting import judge, make_sets
from tests.judging.builders_judging import make_endpoint, make_items

pytestmark = pytest.mark.django_db


def index(client: Client, project: Project, query: str = "") -> str:
    member = make_member(project, role="researcher")
    assert member.account
    client.force_login(member.account)
    answer = client.get(f"/projects/{project.slug}/results/{query}")
    return " ".join(answer.content.decode().split())


def places(page: str) -> dict[str, str]:
    """The addresses of what study 000 prints, by its name."""
    part = page.split("Study 000:")[1].split("Study 001:")[0]
    found = re.findall(r'<a href="([^"]*)">([^<]*)</a>', part)
    return {name: unescape(href) for href, name in found}


def test_every_printed_table_is_of_the_strategies_that_it_is_printed_for() -> None:
    printed = defaultdict(set)
    for path in sorted(Path(published_tables.FOLDER).glob("000-*.csv")):
        for row in published_tables.rows(path):
            printed[f"table {row['table']}"].add(row["strategy"])
    named = {
        place.name: set(place.strategies)
        for page in PAGES.values()
        for view in page.views
        for place in view.studies.get("000", ())
        if place.name in printed
    }
    assert named == printed


def test_a_table_leads_to_its_view_with_the_runs_of_its_strategy(client: Client) -> None:
    project = make_project("fbi")
    items = make_items(project, 2)
    make_replied(project, "vanilla", ((item, scores(9, 5)) for item in items))
    for _ in range(2):
        make_replied(project, "pairwise", ((item, verdicts("G")) for item in items))
    found = places(index(client, project))
    assert found["table 3"] == "overview/?view=abilities&measure=undetected&run=1&run=2&run=3"
    assert found["table 7"] == "by-category/?view=counts&run=1"
    assert found["table 12"] == "verdicts/?view=verdicts&by=ability,category&run=2&run=3"


def test_a_table_of_a_strategy_without_a_run_says_so(client: Client) -> None:
    page = index(client, make_project("fbi"))
    assert places(page)["table 11"] == "verdicts/?view=verdicts&by=ability,category"
    assert ">table 11</a> <small>pairwise-verdict, no run</small>" in page
    assert ">table 17</a> <small>no run</small>" in page
    # Of any strategy, but of no run.
    assert ">section 5.4</a> <small>nothing to show</small>" in page


def test_chosen_runs_are_shown_whatever_their_strategy(client: Client) -> None:
    project = make_project("fbi")
    make_replied(project, "vanilla", ((item, scores(9, 5)) for item in make_items(project, 2)))
    page = index(client, project, "?run=1")
    assert places(page)["figure 2"] == "explanations/?view=credit-of-words&run=1"
    assert places(page)["table 12"].endswith("&by=ability,category&run=1")


def test_tables_are_grouped_by_fields_that_the_items_have(client: Client) -> None:
    project = make_project("lab", task_type="error-detection")
    make_sets(project, response_model="gpt")
    assert 'href="detector/?view=figures&amp;by=task,response_model"' in index(client, project)
    other = make_project("other", task_type="error-detection")
    make_sets(other)
    assert 'href="detector/?view=figures"' in index(client, other)


def test_every_place_is_there(client: Client) -> None:
    project = make_project("lab", task_type="error-detection")
    items = make_sets(project, response_model="gpt")
    judge(items, "DDUU--", endpoint=make_endpoint("http://judge.invalid/v1"))
    page = index(client, project)
    found = re.findall(r'<span><a href="([^"]*)">', page)
    assert len(found) == sum(
        len(view.studies.get(study, ()))
        for one in PAGES.values()
        for view in one.views
        for study in pages.STUDIES
    )
    for href in found:
        assert client.get(f"/projects/lab/results/{unescape(href)}").status_code == 200, href
