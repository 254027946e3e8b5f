"""What a reply said beyond its result is written out on the pages."""

import pytest
from django.test import Client

from annotation.models import Project
from judging.strategies.replies.item_decisions import DETAIL_WORDS, SIDES
from judging.templatetags.judging import detail, plain
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db


def test_pages_of_an_outcome_say_its_detail_and_its_scores(
    project: Project, browser: Client
) -> None:
    higher, lower = make_items(project, 2)
    run = make_replied(project, "vanilla", [(higher, scores(5, 9)), (lower, scores(9, 5))])
    base = f"/projects/{project.slug}/"
    page = browser.get(f"{base}runs/{run.number}/items/{higher.key}/").content.decode()
    assert "Detail: a higher score." in page
    assert "score of gold" in page
    assert "score of perturbed" in page
    listed = browser.get(f"{base}runs/{run.number}/").content.decode()
    assert "<td>a higher score</td>" in listed
    assert "<td>a lower score</td>" in listed


def test_a_detail_that_somebody_imported_stays_as_it_is(project: Project) -> None:
    [item] = make_items(project, 1)
    run = make_replied(project, "vanilla", [(item, scores(9, 9))])
    outcome = run.outcomes.get()
    assert detail(outcome) == DETAIL_WORDS["equal"] == "equal scores"
    outcome.detail = "own_word"
    assert detail(outcome) == "own word"
    outcome.detail, outcome.cause = "", "timed_out"
    assert detail(outcome) == "timed out"


def test_the_choice_of_a_pair_is_no_score() -> None:
    assert {"gold", "perturbed"} == SIDES
    assert plain({"gold": 9.0, "perturbed": "gold"}) == [
        ("score of gold", 9.0),
        ("perturbed", "gold"),
    ]
