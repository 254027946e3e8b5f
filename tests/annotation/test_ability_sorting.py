"""Prompts sorted into abilities: by the service, on the page, with and without a script."""

from typing import Any

import pytest
from django.urls import reverse

from annotation import importing, tasktypes
from annotation.errors import FieldError, Refused
from annotation.exporting import tables
from annotation.items import ability_sorting
from annotation.items.ability_sorting import AbilityChange, AbilitySuggestion
from annotation.items.views import ability_sorting as sorting_page
from annotation.models import Event, Item, Membership, Project
from formats.rows import Row
from tests.builders import browser_of, make_item, make_member, make_project
from tests.judging.builders_judging import api_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    project = make_project("p", task_type="gold-verification")
    bring(project, *(f"Prompt {number}" for number in range(3)))
    return project


@pytest.fixture
def lead(project: Project) -> Membership:
    return make_member(project, role="lead")


def bring(project: Project, *prompts: str, **more: Any) -> importing.ItemImportReport:
    rows = [
        Row("f", number, {"key": f"p{number}", "prompt": prompt, **more})
        for number, prompt in enumerate(prompts)
    ]
    return importing.store_items(
        project, importing.parse_items(rows, tasktypes.load_task_type(project))
    )


def ability(key: str) -> str:
    return Item.objects.get(key=key).ability


def suggest(project: Project, **said: str) -> int:
    items = {item.key: item.pk for item in Item.objects.filter(project=project)}
    told = [AbilitySuggestion(items[key], slug) for key, slug in said.items()]
    return ability_sorting.store_suggestions(project, told, by="run 1, a model")


def post(lead: Membership, *, script: bool = False, **values: Any) -> Any:
    keys = [item.key for item in ability_sorting.list_prompts(lead.project)]
    rows = {"key": keys, "shown": [ability(key) for key in keys], "offered": [""] * len(keys)}
    headers = {"HX-Request": "true"} if script else {}
    address = reverse("abilities", args=["p"])
    return browser_of(lead).post(address, rows | values, follow=not script, headers=headers)


def test_an_ability_is_set_with_that_of_what_is_made_of_it_and_is_on_record(
    lead: Membership,
) -> None:
    done = ability_sorting.set_abilities(lead, [AbilityChange("p1", "factual", "")])
    [item] = done.changed
    item.refresh_from_db()
    assert (item.ability, item.source_ability, done.missed) == ("factual", "factual", [])
    event = Event.objects.get(kind="ability")
    assert (event.subject, event.member) == ("p1", lead)
    assert (event.old, event.new) == ({"ability": ""}, {"ability": "factual"})


def test_what_is_so_already_is_neither_changed_nor_on_record(lead: Membership) -> None:
    ability_sorting.set_abilities(lead, [AbilityChange("p1", "factual")])
    assert ability_sorting.set_abilities(lead, [AbilityChange("p1", "factual", "")]).changed == []
    assert Event.objects.filter(kind="ability").count() == 1


def test_what_somebody_else_changed_meanwhile_is_told_and_left(
    project: Project, lead: Membership
) -> None:
    ability_sorting.set_abilities(
        make_member(project, role="lead"), [AbilityChange("p1", "reasoning", "")]
    )
    done = ability_sorting.set_abilities(
        lead, [AbilityChange("p1", "factual", ""), AbilityChange("p2", "factual", "")]
    )
    assert [item.key for item in done.changed] == ["p2"]
    assert [item.ability for item in done.missed] == ["reasoning"]
    assert ability("p1") == "reasoning"


def test_what_cannot_be_sorted_is_refused_and_nothing_is_changed(lead: Membership) -> None:
    with pytest.raises(FieldError, match="'score-invariant' is not an ability"):
        ability_sorting.set_abilities(lead, [AbilityChange("p0", "score-invariant")])
    with pytest.raises(Refused, match="The prompt 'gone' no longer exists"):
        ability_sorting.set_abilities(
            lead, [AbilityChange("p0", "factual"), AbilityChange("gone", "factual")]
        )
    vetting = make_member(make_project(), role="lead")
    item = make_item(vetting.project)
    with pytest.raises(Refused, match="category determines the ability"):
        ability_sorting.set_abilities(vetting, [AbilityChange(item.key, "reasoning")])
    assert not Event.objects.filter(kind="ability").exists()
    assert ability("p0") == ""


def test_undo_takes_back_step_by_step_and_never_what_others_changed_since(
    project: Project, lead: Membership
) -> None:
    ability_sorting.set_abilities(lead, [AbilityChange("p0", "factual")])
    ability_sorting.set_abilities(
        lead, [AbilityChange("p1", "factual"), AbilityChange("p2", "factual")]
    )
    ability_sorting.set_abilities(
        make_member(project, role="lead"), [AbilityChange("p2", "reasoning")]
    )
    done = ability_sorting.undo_last(lead)
    assert [item.key for item in done.changed] == ["p1"]
    assert [item.key for item in done.missed] == ["p2"]
    assert [item.key for item in ability_sorting.undo_last(lead).changed] == ["p0"]
    assert ability_sorting.undo_last(lead).changed == []
    assert (ability("p0"), ability("p1"), ability("p2")) == ("", "", "reasoning")


def test_a_suggestion_sorts_nothing_until_somebody_takes_it(
    project: Project, lead: Membership
) -> None:
    assert suggest(project, p0="factual", p1="no-such", p2="reasoning") == 2
    assert suggest(project, p0="factual") == 0
    assert (ability("p0"), ability_sorting.count_prompts(project).suggested) == ("", 2)
    ability_sorting.set_abilities(lead, [AbilityChange("p0", "factual", "")])
    counts = ability_sorting.count_prompts(project)
    assert (counts.total, counts.unsorted, counts.suggested) == (3, 2, 1)
    assert {one.slug: number for one, number in counts.abilities}["factual"] == 1
    assert [item.key for item in ability_sorting.list_prompts(project)] == ["p1", "p2", "p0"]
    assert [item.key for item in ability_sorting.list_prompts(project, "suggested")] == ["p2"]


def test_the_same_suggestion_again_is_nothing_new(project: Project) -> None:
    for item in (make_item(project), make_item(project, fields={"topic": "bees"})):
        before = dict(item.fields)
        assert item.suggest("factual", "run 1")
        assert not item.suggest("factual", "run 1")
        assert item.suggest("factual", "run 2")
        assert item.suggest("reasoning", "run 2")
        item.refresh_from_db()
        assert len(item.fields) == len(before) + 2
        assert before.items() <= item.fields.items()


def test_the_same_prompts_again_are_nothing_new_once_they_are_sorted(
    project: Project, lead: Membership
) -> None:
    suggest(project, p1="factual")
    ability_sorting.set_abilities(lead, [AbilityChange("p0", "factual")])
    report = bring(project, "Prompt 0", "Prompt 1")
    assert (report.unchanged, report.conflicts) == (2, [])
    assert len(bring(project, "Prompt 0", ability="reasoning").conflicts) == 1
    assert len(bring(project, "Prompt 1", weight=3).conflicts) == 1


def test_an_export_carries_the_ability_and_brings_it_back(
    project: Project, lead: Membership
) -> None:
    suggest(project, p1="reasoning")
    ability_sorting.set_abilities(lead, [AbilityChange("p0", "long-form")])
    rows = [Row("f", line, row) for line, row in enumerate(tables.item_rows(project), start=2)]
    other = make_project("other", task_type="gold-verification")
    importing.store_items(other, importing.parse_items(rows, tasktypes.load_task_type(other)))
    there = {item.key: item for item in Item.objects.filter(project=other)}
    assert (there["p0"].ability, there["p0"].source_ability) == ("long-form", "long-form")
    assert there["p1"].fields["suggested_ability"] == "reasoning"


def test_the_page_sorts_one_several_and_what_is_suggested(
    project: Project, lead: Membership
) -> None:
    page = post(lead, set="factual p1").content.decode()
    assert "p1 is Factual." in page
    assert "2 prompts sorted." in post(lead, all="reasoning", chosen=["p0", "p2"]).content.decode()
    assert "2 prompts restored." in post(lead, undo="last").content.decode()
    suggest(project, p0="long-form", p1="long-form")
    offered = ["long-form", "", "long-form"]  # p0, p2, p1: what is unsorted comes first
    post(lead, suggested="shown", offered=offered)
    assert [ability(f"p{number}") for number in range(3)] == ["long-form", "factual", ""]


def test_a_script_gets_the_changed_rows_alone_and_what_was_refused(lead: Membership) -> None:
    answer = post(lead, script=True, set="factual p1")
    drawn = answer.content.decode()
    assert 'value="p1"' in drawn
    assert 'value="p0"' not in drawn
    assert "p1 is Factual." in drawn
    assert "<html" not in drawn
    refused = post(lead, script=True, all="factual")
    assert (refused.status_code, "Nothing is selected" in refused.content.decode()) == (422, True)


@pytest.mark.parametrize(("script", "number"), [(True, 0), (False, 1)])
def test_a_refusal_is_said_once_by_the_answer_or_the_next_page(
    lead: Membership, script: bool, number: int
) -> None:
    browser, address = browser_of(lead), reverse("abilities", args=["p"])
    headers = {"HX-Request": "true"} if script else {}
    refused = browser.post(address, {"all": "factual"}, headers=headers)
    assert refused.content.decode().count("Nothing is selected") == 1 - number
    assert browser.get(address).content.decode().count("Nothing is selected") == number


def test_a_page_that_is_out_of_date_overwrites_nothing(project: Project, lead: Membership) -> None:
    ability_sorting.set_abilities(
        make_member(project, role="lead"), [AbilityChange("p1", "reasoning")]
    )
    page = post(lead, set="factual p1", shown=["", "", ""]).content.decode()
    assert "Somebody else changed p1 to Reasoning; that stays." in page


def test_a_form_that_lacks_what_it_showed_is_answered_too(lead: Membership) -> None:
    ability_sorting.set_abilities(lead, [AbilityChange("p0", "reasoning")])
    post(lead, suggested="shown", offered=["factual"] * 3, shown=[])
    assert [ability(f"p{number}") for number in range(3)] == ["reasoning", "factual", "factual"]


def test_prompts_are_escaped_and_long_ones_cut(lead: Membership) -> None:
    bring(make_project("q", task_type="gold-verification"), "<script>x</script> " + "long " * 2000)
    hostile = make_member(Project.objects.get(slug="q"), role="lead")
    page = browser_of(hostile).get(reverse("abilities", args=["q"])).content.decode()
    assert "<script>x" not in page
    assert "&lt;script&gt;x" in page
    assert "Read the full text" in page
    assert len(page) < 40_000


def test_fifty_prompts_a_page_cost_a_fixed_number_of_queries(
    lead: Membership, django_assert_max_num_queries: Any
) -> None:
    bring(lead.project, *(f"Prompt {number}" for number in range(60)))
    browser = browser_of(lead)
    with django_assert_max_num_queries(14):
        page = browser.get(reverse("abilities", args=["p"])).content.decode()
    assert page.count("data-row") == 50
    assert "Page 1 of 2" in page


def test_the_project_page_leads_there_where_prompts_wait(lead: Membership) -> None:
    assert reverse("abilities", args=["p"]) in browser_of(lead).get("/projects/p/").content.decode()
    vetting = make_member(make_project("v"), role="lead")
    assert "abilities/" not in browser_of(vetting).get("/projects/v/").content.decode()
    page = browser_of(vetting).get(reverse("abilities", args=["v"])).content.decode()
    assert "the category determines the ability" in page


def test_programs_read_how_far_it_is_and_sort_as_pages_do(
    project: Project, lead: Membership
) -> None:
    client, way = api_client(lead), "/api/v1/projects/p/abilities/"

    def ask(*items: dict[str, str]) -> Any:
        return client.patch(way, {"items": [*items]}, content_type="application/json")

    wish = {"item": "p1", "ability": "factual", "shown": ""}
    assert ask(wish).json() == {"changed": ["p1"], "missed": []}
    assert ask(wish | {"ability": "reasoning"}).json() == {"changed": [], "missed": ["p1"]}
    told = client.get(way).json()
    assert (told["total"], told["unsorted"], told["abilities"]["factual"]) == (3, 2, 1)
    assert ask(wish | {"ability": "taste"}).status_code == 422
    assert ask({"item": "gone", "ability": "factual"}).status_code == 422
    too_many = ask(*[{}] * 20_001)
    assert (too_many.status_code, len(too_many.content) < 1_000) == (422, True)
    assert client.post(way + "undo/").json() == {"changed": ["p1"], "missed": []}
    assert ability("p1") == ""


def test_undo_passes_over_what_others_changed_and_what_is_undone_already(
    project: Project, lead: Membership
) -> None:
    other = make_member(project, role="lead")
    ability_sorting.set_abilities(lead, [AbilityChange("p0", "factual")])
    ability_sorting.set_abilities(lead, [AbilityChange("p1", "factual")])
    ability_sorting.set_abilities(other, [AbilityChange("p1", "reasoning")])
    done = ability_sorting.undo_last(lead)
    assert [[item.key for item in part] for part in (done.changed, done.missed)] == [["p0"], ["p1"]]
    ability_sorting.set_abilities(other, [AbilityChange("p0", "factual")])
    assert ability_sorting.undo_last(lead).changed == []
    assert ability("p0") == "factual"


@pytest.mark.parametrize(
    ("changed", "missed", "undone", "words"),
    [
        ([], [], False, "Nothing changed."),
        ([], [], True, "There is nothing to undo."),
        (["p0"], [], False, "p0 is Factual."),
        (["p0"], [], True, "p0 is again Factual."),
        (["p0", "p1"], [], False, "2 prompts sorted."),
        (["p0", "p1"], [], True, "2 prompts restored."),
        ([], ["p0"], False, "Somebody else changed p0 to Factual; that stays."),
    ],
)
def test_what_became_of_sorting_is_said_in_words(
    changed: list[str], missed: list[str], undone: bool, words: str
) -> None:
    done = ability_sorting.SortResult(
        [Item(key=key, ability="factual") for key in changed],
        [Item(key=key, ability="factual") for key in missed],
    )
    assert sorting_page._describe_result(done, {"factual": "Factual"}, undone=undone) == words
