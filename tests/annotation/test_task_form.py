"""The task type as a form: what is typed becomes the definition, and nothing else changes."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from annotation import tasktypes
from annotation.models import Label, Membership
from annotation.tasktypes import form_entries, toml_text
from tests.builders import browser_of, make_item, make_member, make_project, say, take

DEFINITIONS = tasktypes.load_definitions()


def entries(definition: dict[str, Any]) -> list[form_entries.Entry]:
    found = list(form_entries.list_head(definition))
    for number, field in enumerate(definition.get("fields", [])):
        found += form_entries.list_field(number, field)
        for path, choice in form_entries.list_choices(number, field):
            found += form_entries.list_choice(path, choice)
    return found


def as_typed(entry: form_entries.Entry) -> str:
    if entry.kind == "check":
        return "1" if entry.value else "0"
    return "\n".join(entry.value) if entry.kind == "lines" else str(entry.value)


@pytest.mark.parametrize("slug", DEFINITIONS)
def test_a_form_that_is_sent_back_unchanged_asks_the_same(slug: str) -> None:
    said = {entry.path: as_typed(entry) for entry in entries(DEFINITIONS[slug])}
    assert form_entries.read_entries(DEFINITIONS[slug], said) == DEFINITIONS[slug]


def test_what_is_typed_is_asked() -> None:
    before = DEFINITIONS["perturbation-vetting"]
    said = {"question": "Right?", "fields.0.choices.0.title": "Good", "fields.0.choices.0.help": ""}
    after = form_entries.read_entries(before, {**said, "fields.0.choices.0.examples": "a\n\n b "})
    task = tasktypes.parse_definition(after)
    assert task.question == "Right?"
    first = task.fields[0].options[0]
    assert (first.title, first.help, first.examples) == ("Good", "", ("a", "b"))
    assert before["fields"][0]["choices"][0]["title"] == "Valid"


@pytest.mark.parametrize("kind", form_entries.NEW_KINDS)
def test_a_question_of_each_kind_is_added_and_can_be_used(kind: str) -> None:
    definition = form_entries.change_lists(DEFINITIONS["rating"], f"add field {kind}")
    definition = form_entries.change_lists(definition, f"add field {kind}")
    task = tasktypes.parse_definition(definition)
    assert [field.name for field in task.fields[-2:]] == ["question_1", "question_2"]
    assert task.fields[-1].kind == kind


def test_choices_and_questions_are_added_moved_and_removed() -> None:
    definition = DEFINITIONS["perturbation-vetting"]
    definition = form_entries.change_lists(definition, "add choice fields.0")
    values = [one["value"] for one in definition["fields"][0]["choices"]]
    assert values[-1] == "choice-1"
    moved = form_entries.change_lists(definition, "up fields.0.choices.5")
    assert [one["value"] for one in moved["fields"][0]["choices"]][-2] == "choice-1"
    back = form_entries.change_lists(moved, "remove fields.0.choices.4")
    assert back == DEFINITIONS["perturbation-vetting"]
    down = form_entries.change_lists(back, "down fields.1")
    names = [field["name"] for field in down["fields"]]
    assert names.index("reason") == 2
    scale = form_entries.change_lists(DEFINITIONS["rating"], "add choice fields.0")
    assert scale["fields"][0]["choices"][-1]["value"] == 4


@given(
    st.sampled_from(sorted(DEFINITIONS)),
    st.text(max_size=30)
    | st.from_regex(
        r"(add choice|remove|up|down) fields\.\d{1,2}(\.(choices|severities)\.\d{1,2})?"
    ),
)
def test_no_change_of_a_list_breaks_the_form(slug: str, action: str) -> None:
    changed = form_entries.change_lists(DEFINITIONS[slug], action)
    assert entries(changed)
    assert toml_text.write_definition(changed)


@pytest.fixture
def lead() -> Membership:
    return make_member(make_project(), role="lead")


def sent(page: str) -> dict[str, str]:
    """What a browser sends of a page's form, unchanged."""
    form = page.split("data-ask-before-leaving", 1)[1].split("</form>", 1)[0]
    said: dict[str, str] = {}
    for tag in re.findall(r"<(?:input|textarea)[^>]*>(?:[^<]*</textarea>)?", form):
        name, value = re.search(r' name="([^"]+)"', tag), re.search(r' value="([^"]*)"', tag)
        if name is None or ('type="checkbox"' in tag and "checked" not in tag):
            continue
        text = tag.split(">", 1)[1].removesuffix("</textarea>").removeprefix("\n")
        said[name[1]] = unescape(value[1] if value else text)
    return said


def path(lead: Membership) -> str:
    return f"/projects/{lead.project.slug}/task/"


@pytest.mark.django_db
def test_a_lead_changes_a_title_without_toml(lead: Membership) -> None:
    client: Client = browser_of(lead)
    said = sent(client.get(path(lead)).content.decode())
    assert said["fields.0.choices.0.title"] == "Valid"
    unchanged = client.post(path(lead), said, follow=True).content.decode()
    assert "No changes" in unchanged
    said["fields.0.choices.0.title"] = "A <real> error"
    page = client.post(path(lead), said, follow=True).content.decode()
    assert "Saved as" in page
    lead.project.refresh_from_db()
    task = tasktypes.load_task_type(lead.project)
    assert task.fields[0].options[0].title == "A <real> error"
    assert task.fields[0].options[0].value == "valid"


@pytest.mark.django_db
def test_lists_change_on_the_page_and_are_saved_with_what_was_typed(lead: Membership) -> None:
    client = browser_of(lead)
    said = sent(client.get(path(lead)).content.decode())
    said |= {"question": "Typed before?", "do": "add field yesno"}
    answer = client.post(path(lead), said)
    assert answer.status_code == 200
    again = sent(answer.content.decode())
    assert again["question"] == "Typed before?"
    number = max(int(name.split(".")[1]) for name in again if name.startswith("fields."))
    again[f"fields.{number}.title"] = "Is it clear?"
    assert client.post(path(lead), again).status_code == 302
    lead.project.refresh_from_db()
    task = tasktypes.load_task_type(lead.project)
    assert (task.question, task.fields[-1].title) == ("Typed before?", "Is it clear?")


@pytest.mark.django_db
def test_a_choice_that_labels_have_is_dropped_only_after_a_question(lead: Membership) -> None:
    ann = make_member(lead.project, alias="Ann")
    make_item(lead.project)
    say(ann, take(ann), "not-relevant")
    client = browser_of(lead)
    said = sent(client.get(path(lead)).content.decode())
    answer = client.post(path(lead), {**said, "do": "remove fields.0.choices.3"})
    again = sent(answer.content.decode())
    refused = client.post(path(lead), again)
    assert refused.status_code == 422
    page = refused.content.decode()
    assert "in 1 label" in page
    agreed = re.search(r'name="save-anyway" value="([^"]+)"', page)
    assert agreed
    assert client.post(path(lead), {**sent(page), "save-anyway": agreed[1]}).status_code == 302
    assert Label.objects.get().choice == "not-relevant"
    lead.project.refresh_from_db()
    options = tasktypes.load_task_type(lead.project).deciding.options
    assert [option.value for option in options] == [
        "valid",
        "invalid",
        "score-invariant",
        "not-sure",
    ]


@pytest.mark.django_db
def test_what_cannot_be_used_is_said_and_kept(lead: Membership) -> None:
    client = browser_of(lead)
    said = sent(client.get(path(lead)).content.decode())
    said |= {"fields.0.choices.0.title": "", "question": "Kept?"}
    answer = client.post(path(lead), said)
    assert answer.status_code == 422
    assert "This task type cannot be saved yet." in answer.content.decode()
    assert sent(answer.content.decode())["question"] == "Kept?"
