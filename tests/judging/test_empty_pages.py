"""Result pages that have nothing to show are grey and say why; the others have figures."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotation.models import Project
from judging.models import Run
from judging.results import empty_pages, run_marks
from judging.results.tables import PAGES
from tests.builders import make_project
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_items, make_run
from tests.judging.test_same_everywhere import everything

__all__ = ["everything"]
pytestmark = pytest.mark.django_db


def find_empty(project: Project) -> dict[str, str]:
    every = run_marks.load_marked_runs(project)
    return empty_pages.find_empty_pages(PAGES, project, run_marks.select_default(every), every)


def has_figures(browser: Client, project: str, page: str) -> bool:
    """Whether any view of a page has a table."""
    return any(
        "<tbody" in browser.get(f"/projects/{project}/results/{page}/?view={view.slug}").content
        .decode()
        for view in PAGES[page].views
    )  # fmt: skip


@pytest.mark.parametrize("project", ["fbi", "errors", "p", "c"])
def test_a_page_is_grey_if_none_of_its_views_has_figures(everything: Client, project: str) -> None:
    empty = find_empty(Project.objects.get(slug=project))
    assert set(empty) == {page for page in PAGES if not has_figures(everything, project, page)}


def test_a_project_without_anything_has_no_page_to_show(everything: Client) -> None:
    assert set(find_empty(make_project("bare"))) == set(PAGES)
    assert not any(has_figures(everything, "bare", page) for page in PAGES)


def test_a_run_without_results_fills_its_costs_and_what_needs_none(everything: Client) -> None:
    project = make_project("begun")
    make_items(project, 1)
    make_run(project)
    assert set(PAGES) - set(find_empty(project)) == {"cost", "data-set", "plan"}


def test_a_grey_page_can_be_reached_and_says_why(everything: Client) -> None:
    project, results = make_project("lone"), "/projects/lone/results/"
    make_replied(project, "vanilla", [(make_items(project, 1)[0], scores(9, 9))])
    why = "comparing needs two runs with results that judge perturbed answers"
    index = everything.get(results).content.decode()
    cards = index.split('<li class="sheet result-card"')[1:]
    [card] = [one for one in cards if "/compare/" in one.partition("</li>")[0]]
    assert card.startswith(' data-kind="empty">')
    assert f"Nothing to show: {why}." in card
    page = everything.get(f"{results}overview/?run=1").content.decode()
    [link] = re.findall(r'<a href="[^"]*/compare/\?run=1".*?</a>', page)
    assert f'title="Nothing to show: {why}"' in link
    assert f'<span class="unseen">, nothing to show: {why}</span>' in link
    [overview] = re.findall(r'<a href="[^"]*/overview/\?run=1".*?</a>', page)
    assert "nothing to show" not in overview
    assert everything.get(f"{results}compare/?run=1").status_code == 200


def test_any_number_of_runs_are_as_many_queries(everything: Client) -> None:
    project = make_project("many")
    items, counts = make_items(project, 2), []
    for _ in range(3):
        make_replied(project, "vanilla", [(item, scores(9, 9)) for item in items])
        runs = list(Run.objects.in_project(project).for_results())
        with CaptureQueriesContext(connection) as found:
            empty_pages.find_empty_pages(PAGES, project, runs, runs)
        counts.append(len(found))
    # Results, audits, their explanations, items, labels.
    assert counts == [5, 5, 5]
