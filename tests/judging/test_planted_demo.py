"""The demo's second project: every page of results has something to show, and what was planted is
found."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Account, Item, Label, Membership, Project, Resolution
from judging import planted_demo
from judging.models import Outcome, Run
from judging.results.tables import PAGES, blindspots

# The asking has a database thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)
# Pages of other task types, and of runs that the demo has not.
ELSEWHERE = {"verdicts", "explanations", "detector", "corrected", "people", "pairwise"}


@pytest.fixture
def project(settings: Any, tmp_path: Path) -> Project:
    settings.VAR_DIR = tmp_path
    call_command("demo", stdout=StringIO())
    return Project.objects.get(slug=planted_demo.SLUG)


def test_the_one_blind_spot_that_was_planted_is_the_one_that_is_found(project: Project) -> None:
    """Some seconds: the whole demo is made."""
    found = {
        run.endpoint.name: [
            row["value"]
            for row in blindspots.tabulate(project, [run], ["category"])
            if row["blind"]
        ]
        for run in Run.objects.filter(project=project, endpoint__name__startswith="planted")
    }
    assert found == {
        "planted-even-2": [],
        "planted-blind-2": ["calculations"],
        "planted-alarmed-2": [],
        "planted-guessing-2": [],
    }


def test_every_page_of_results_of_the_task_type_has_figures(
    project: Project, client: Client
) -> None:
    """Some seconds: the whole demo is made, and a dozen pages of results."""
    client.force_login(Account.objects.get(username="researcher"))
    empty = []
    for page in set(PAGES) - ELSEWHERE:
        text = client.get(reverse("results-page", args=[project.slug, page])).content.decode()
        # Blind spots are searched by a worker.
        if "<tbody" not in text and "figures are being computed" not in text:
            empty.append(page)
    assert empty == []


def test_it_says_that_it_is_planted_and_everybody_of_the_demo_has_a_role_in_it(
    project: Project,
) -> None:
    """Some seconds: the whole demo is made."""
    assert "No language model was asked" in project.description
    notes = Run.objects.filter(project=project).exclude(endpoint__name="baseline")
    assert set(notes.values_list("note", flat=True)) == {planted_demo.RUN_NOTE}
    there = Membership.objects.in_project(project).exclude(account=None)
    assert {one.alias: one.role for one in there} == {
        name: name for name in ("annotator", "researcher", "lead")
    }


def test_labels_nearly_always_agree_and_made_again_nothing_is_added(project: Project) -> None:
    """Some seconds: the whole demo is made."""
    labels = Label.objects.filter(member__project=project)
    raters = dict.fromkeys(planted_demo.RATERS, labels.count() / 2)
    assert {
        rater: labels.filter(member__alias=rater).count() for rater in planted_demo.RATERS
    } == raters
    differing = labels.filter(choice="invalid").count()
    assert 0 < differing < labels.count() / 10
    kinds = Item, Label, Resolution, Run, Outcome
    before = [kind.objects.count() for kind in kinds]
    planted_demo.make_project(timezone.now())
    assert [kind.objects.count() for kind in kinds] == before
