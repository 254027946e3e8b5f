"""A run suggests abilities; people find them where they sort, and nothing is sorted by it."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from annotation.items import ability_sorting
from annotation.models import Event, Item, Membership, Project
from judging.errors import Refused
from judging.generation import ability_suggestions
from judging.models import Reading, Run
from judging.runs import lifecycle
from tests.builders import make_member, make_project
from tests.judging.builders_judging import api_client, make_endpoint, make_run, results, work
from tests.judging.test_generation_tables import NOBODY, answered, ended, make_prompts
from tests.services.scripted_evaluator import ScriptedEvaluator

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def prompts() -> Project:
    return make_project("prompts", task_type="gold-verification")


def asked(project: Project, *said: Any, **values: Any) -> Run:
    """A run that was answered with these abilities in turn, or with other texts."""
    run = make_run(project, make_endpoint(NOBODY), "suggest-ability", **values)
    replies = iter(said)

    def say(prompt: str) -> str:
        one = next(replies)
        return json.dumps({"ability": one, "rationale": "So."}) if one.isalpha() else one

    return ended(run, say)


def lead_of(project: Project) -> Membership:
    return make_member(project, role="lead")


def suggested(project: Project) -> list[str]:
    items = Item.objects.filter(project=project).order_by("position")
    return [item.fields.get("suggested_ability", "") for item in items]


def test_ten_prompts_are_suggested_abilities_by_an_evaluator_and_confirmed_at_once(
    prompts: Project, evaluator: ScriptedEvaluator
) -> None:
    make_prompts(prompts, 10, ability="")
    run = work(make_run(prompts, make_endpoint(evaluator), "suggest-ability"))
    assert results(run) == {"made": 10}
    said = StringIO()
    call_command("take_suggestions", project="prompts", run=run.number, stdout=said)
    assert said.getvalue().startswith("10 prompts with a suggestion, 10 new. A lead accepts them")
    assert ability_sorting.count_prompts(prompts).suggested == 10
    assert not Item.objects.exclude(ability="").exists()
    wishes = [
        ability_sorting.AbilityChange(item.key, item.fields["suggested_ability"], "")
        for item in ability_sorting.list_prompts(prompts, "suggested")
    ]
    assert len(ability_sorting.set_abilities(lead_of(prompts), wishes).changed) == 10
    assert ability_sorting.count_prompts(prompts).unsorted == 0
    assert ability_suggestions.store_suggestions(run) == ability_suggestions.SuggestionCounts(10, 0)


def test_a_reply_that_names_no_ability_suggests_nothing(prompts: Project) -> None:
    make_prompts(prompts, 3, ability="")
    run = asked(prompts, "factual", '{"ability": "taste"}', "I would rather not.")
    assert results(run) == {"made": 1, "unparsable": 2}
    assert ability_suggestions.store_suggestions(run) == ability_suggestions.SuggestionCounts(1, 1)
    assert sorted(suggested(prompts)) == ["", "", "factual"]
    assert not Item.objects.exclude(first_reply_at=None).exists()


def test_of_several_samples_most_decide_and_a_later_run_takes_the_place_of_the_first(
    prompts: Project,
) -> None:
    make_prompts(prompts, 1, ability="")
    run = asked(prompts, "reasoning", "reasoning", "reasoning", samples=3)
    first = Reading.objects.filter(reply__request__calls__sample=0)
    assert first.update(value={"ability": "factual", "rationale": "So."}) == 1
    ability_suggestions.store_suggestions(run)
    assert suggested(prompts) == ["reasoning"]
    item = Item.objects.get()
    assert item.fields["suggested_by"].startswith("suggest-ability v1, ")
    assert item.fields["suggested_by"].endswith(f"run {run.number}")
    later = asked(prompts, "factual")
    assert ability_suggestions.store_suggestions(later).new == 1
    assert suggested(prompts) == ["factual"]


def test_what_suggests_nothing_is_refused_with_the_reason(prompts: Project) -> None:
    make_prompts(prompts, 1, ability="")
    gold = answered(prompts)
    with pytest.raises(Refused, match="suggests no abilities"):
        ability_suggestions.store_suggestions(gold)
    planned = make_run(prompts, make_endpoint(NOBODY), "suggest-ability")
    lifecycle.plan_calls(planned)
    with pytest.raises(Refused, match="still running"):
        ability_suggestions.store_suggestions(planned)
    none = asked(prompts, "nothing at all.")
    with pytest.raises(CommandError, match="suggested nothing"):
        call_command("take_suggestions", project="prompts", run=none.number)
    assert suggested(prompts) == [""]


def test_a_lead_takes_them_from_the_page_of_the_run_or_by_a_program(prompts: Project) -> None:
    make_prompts(prompts, 2, ability="")
    run = asked(prompts, "factual", "factual")
    lead = lead_of(prompts)
    assert lead.account
    browser = Client()
    browser.force_login(lead.account)
    page = browser.get(reverse("run", args=["prompts", run.number])).content.decode()
    way = reverse("run-suggestions", args=["prompts", run.number])
    assert way in page
    assert "Import items" not in page
    answer = browser.post(way, follow=True)
    assert answer.redirect_chain == [("/projects/prompts/abilities/?which=suggested", 302)]
    assert "2 prompts with suggested abilities, 2 of them new." in answer.content.decode()
    assert answer.content.decode().count("data-take") == 2
    other = answered(prompts)
    refused = browser.post(reverse("run-suggestions", args=["prompts", other.number]))
    assert (refused.status_code, b"suggests no abilities" in refused.content) == (422, True)
    program = f"/api/v1/projects/prompts/runs/{run.number}/suggestions/"
    assert api_client(lead).post(program).json() == {"suggested": 2, "new": 0}
    kept = Event.objects.get(kind="suggestions")
    assert (kept.member, kept.data["items"]) == (lead, 2)
    assert kept.data["by"].endswith(f"run {run.number}")


def test_the_page_of_a_run_takes_no_unsorted_prompt_for_a_repeat(prompts: Project) -> None:
    make_prompts(prompts, 1, ability="")
    run = asked(prompts, "factual")
    lead = lead_of(prompts)
    assert lead.account
    browser = Client()
    browser.force_login(lead.account)
    page = browser.get(reverse("run", args=["prompts", run.number])).content.decode()
    assert "duplicate of another item" not in page
