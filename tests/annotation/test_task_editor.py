"""A lead adapts what their project asks: checks, versions, confirmation, diff."""

import re
import tomllib
from typing import Any

import pytest

from annotation import importing, tasktypes
from annotation.labelling import queue
from annotation.models import Event, Label, Membership, Project, Resolution, TaskTypeVersion
from annotation.tasktypes import toml_text, versions
from tests.builders import (
    browser_of,
    make_item,
    make_member,
    make_project,
    make_resolution,
    remove_question,
    say,
    take,
)

pytestmark = pytest.mark.django_db

SOURCE = tasktypes.load_sources()["perturbation-vetting"]


@pytest.fixture
def lead() -> Membership:
    return make_member(make_project("p"), role="lead")


def post(lead: Membership, source: str, **values: Any) -> Any:
    shown = values.pop("shown", Project.objects.get(slug="p").task_type_id)
    data = {"source": source.replace("\n", "\r\n"), "shown": shown, **values}
    return browser_of(lead).post("/projects/p/task/", data)


def without(source: str, value: str) -> str:
    """The text without one choice."""
    blocks = re.split(r"(?m)^(?=\[)", source)
    return "".join(block for block in blocks if f'value = "{value}"' not in block)


def test_the_editor_shows_the_text_in_use_under_the_name_that_it_will_have(
    lead: Membership,
) -> None:
    page = browser_of(lead).get("/projects/p/task/").text
    assert "slug = &quot;perturbation-vetting--p&quot;" in page
    assert "# Study 000, appendix A" in page
    assert "Should this change cost the answer points?" in page


def test_what_is_stored_is_a_version_that_the_project_asks_from_then_on(lead: Membership) -> None:
    changed = SOURCE.replace('title = "Valid"', 'title = "Costs points"')
    assert post(lead, changed).status_code == 302
    project = Project.objects.get(slug="p")
    assert str(project.task_type) == "perturbation-vetting--p v1"
    assert tasktypes.load_task_type(project).deciding.options[0].title == "Costs points"
    assert tomllib.loads(project.task_type.source) == project.task_type.definition
    event = Event.objects.get(kind="task-type")
    assert event.member == lead
    assert event.old == {"task type": "perturbation-vetting v1"}
    assert event.new == {"task type": "perturbation-vetting--p v1"}
    assert post(lead, changed.replace("Costs points", "Costs")).status_code == 302
    project.refresh_from_db()
    assert project.task_type.number == 2


def test_a_lead_is_told_whether_there_is_a_new_version(lead: Membership) -> None:
    browser, shown = browser_of(lead), Project.objects.get(slug="p").task_type_id
    for source, said in (
        (SOURCE, "No changes: this is the current version."),
        (SOURCE + "\n# A word.\n", "No changes: this is the current version."),
        (
            SOURCE.replace('title = "Valid"', 'title = "Good"'),
            "It applies to items opened from now on.",
        ),
    ):
        data = {"source": source, "shown": shown}
        page = browser.post("/projects/p/task/", data, follow=True).content.decode()
        assert said in page


def test_the_same_again_stores_nothing(lead: Membership) -> None:
    assert post(lead, SOURCE).status_code == 302
    assert TaskTypeVersion.objects.count() == 1
    assert not Event.objects.filter(kind="task-type").exists()


def test_another_project_of_the_same_type_keeps_what_it_asks(lead: Membership) -> None:
    other = make_project("other")
    post(lead, SOURCE.replace('title = "Valid"', 'title = "Costs points"'))
    other.refresh_from_db()
    assert str(other.task_type) == "perturbation-vetting v1"


def test_a_label_keeps_the_version_that_its_page_asked_from(lead: Membership) -> None:
    before, member = lead.project.task_type, make_member(lead.project)
    make_item(lead.project, "1")
    offer = take(member)
    assert (
        post(lead, SOURCE.replace('title = "Valid"', 'title = "Costs no points"')).status_code
        == 302
    )
    member = Membership.objects.get(pk=member.pk)
    assert member.project.task_type != before
    assert say(member, offer).task_type == before
    assert say(member, queue.reopen_item(member, "1")).task_type == member.project.task_type


def test_a_label_keeps_all_answers_that_its_page_asked_for(lead: Membership) -> None:
    project = make_project("q", task_type="error-detection")
    chief, annotator = make_member(project, role="lead"), make_member(project)
    make_item(project, texts={"input": "2 + 2", "response": "5"})
    offer = take(annotator)
    remove_question(chief, "explanation")
    said = {"verdict": "error", "error_type": "reasoning-correctness", "explanation": "It is 4."}
    page = {"key": offer.key, "item": offer.name, "revision": offer.revision.number}
    assert browser_of(annotator).post("/projects/q/label/submit/", page | said).status_code == 302
    label = Label.objects.get()
    assert label.answers == {**said, "error_type": ["reasoning-correctness"]}
    assert str(label.task_type) == "error-detection v1"


@pytest.mark.parametrize(
    "old, new, said",
    [
        ('title = "Valid"', 'title = "Valid', r"Line \d+</a>: This is not TOML"),
        ('kind = "claim_check"', 'kind = "claims"', r"Line \d+</a>: field 4, kind: is"),
        ('from = "gold"', 'from = "answer"', r"Line \d+</a>: diff: compares answer"),
        ('value = "invalid"', 'value = "valid"', r"Line \d+</a>: field 1, choice 2, value: "),
        ('value = "invalid"', 'value = "invalid"\nkey = "1"\nroute = "x"', r"choice 2, route: is"),
        ("quick = true", "quick = 1", r"Line \d+</a>: quick: is 1; write true or false."),
    ],
)
def test_a_mistake_is_shown_with_its_line_and_the_text_stays(
    lead: Membership, old: str, new: str, said: str
) -> None:
    wrong = SOURCE.replace(old, new, 1)
    answer = post(lead, wrong)
    assert answer.status_code == 422
    assert re.search(said, answer.text), re.findall(r"<li>.*?</li>", answer.text)
    line = int(re.search(r'data-line="(\d+)"', answer.text)[1])  # type: ignore[index]
    pairs = zip(SOURCE.splitlines(), wrong.splitlines(), strict=False)
    changed = next(number for number, (a, b) in enumerate(pairs, start=1) if a != b)
    assert line in range(changed - 1, changed + 4)
    assert TaskTypeVersion.objects.count() == 1


def test_a_key_of_ones_own_is_asked_for_and_a_clash_refused(lead: Membership) -> None:
    own = SOURCE.replace('value = "valid"', 'value = "valid"\nkey = "7"')
    assert post(lead, own).status_code == 302
    keys = [o.key for o in tasktypes.load_task_type(Project.objects.get()).deciding.options]
    assert keys == ["7", "1", "2", "3", "4"]
    clash = own.replace('value = "invalid"', 'value = "invalid"\nkey = "7"')
    assert "which another choice has; use another key." in post(lead, clash).text


def test_a_choice_that_labels_have_goes_only_after_a_confirmation_that_counts_them(
    lead: Membership,
) -> None:
    annotator = make_member(lead.project)
    for number in range(3):
        make_item(lead.project, f"item-{number}")
        say(annotator, take(annotator), "score-invariant" if number else "valid")
    gone = without(SOURCE, "score-invariant")
    asked = post(lead, gone)
    assert asked.status_code == 422
    assert "“Score-invariant” in 2 labels" in asked.text
    assert str(Project.objects.get().task_type) == "perturbation-vetting v1"
    agreed = re.search(r'name="save-anyway" value="(\w+)"', asked.text)[1]  # type: ignore[index]
    # What was agreed to was this text and no other.
    assert post(lead, without(gone, "valid"), **{"save-anyway": agreed}).status_code == 422
    assert post(lead, gone, **{"save-anyway": agreed}).status_code == 302
    old = {str(label.task_type) for label in Label.objects.all()}
    assert old == {"perturbation-vetting v1"}


def test_items_can_be_filtered_by_a_choice_that_is_no_longer_offered(lead: Membership) -> None:
    make_item(lead.project, "old")
    member = make_member(lead.project)
    say(member, take(member), "invalid")
    items = "/projects/p/items/"
    client = browser_of(lead)
    assert "no longer offered" not in client.get(items).text
    gone = without(SOURCE, "invalid")
    asked = post(lead, gone)
    agreed = re.search(r'name="save-anyway" value="(\w+)"', asked.text)[1]  # type: ignore[index]
    post(lead, gone, **{"save-anyway": agreed})
    page = client.get(items, {"choice": "invalid", "annotator": member.alias}).text
    assert "Invalid (no longer offered)" in page
    assert ">old</" in page
    assert ">old</" not in client.get(items, {"choice": "valid"}).text


def test_choices_of_other_fields_and_of_several_at_once_count_too(lead: Membership) -> None:
    project = make_project("q", task_type="error-detection")
    chief, annotator = make_member(project, role="lead"), make_member(project)
    make_item(project, texts={"input": "2 + 2", "response": "5"})
    said = {"verdict": "error", "error_type": ["reasoning-correctness"], "explanation": "4"}
    answer(annotator, said)
    source = without(tasktypes.load_sources()["error-detection"], "reasoning-correctness")
    adapted = versions.parse_source(project, source)
    assert adapted.task is not None
    [lost] = versions.find_lost_answers(chief.project, adapted.task)
    assert (lost.field, lost.answer, lost.labels) == (
        "Which error categories?",
        "Reasoning correctness",
        1,
    )


def with_note(kind: str, name: str = "mood") -> str:
    """The shipped text with one more question, of this kind."""
    definition = {**tomllib.loads(SOURCE)}
    values = {"choices": ["one", "two"], "scale": [1, 2]}.get(kind)
    choices = {"choices": [{"value": one, "title": f"{one}"} for one in values]} if values else {}
    rule = {"choices": "majority", "scale": "median"}.get(kind)
    field = {"name": name, "kind": kind, "title": "Mood", "required": False} | choices
    definition["fields"] = [*definition["fields"], field | ({"rule": rule} if rule else {})]
    return toml_text.write_definition(definition)


@pytest.mark.parametrize("kind", ["choices", "scale"])
def test_a_question_that_labels_answer_keeps_its_kind(lead: Membership, kind: str) -> None:
    lead.project.overlap = 2
    lead.project.save()
    one, other = make_member(lead.project), make_member(lead.project)
    make_item(lead.project)
    assert post(lead, with_note("text")).status_code == 302
    one.refresh_from_db()
    answer(one, {"choice": "valid", "mood": "in words"})
    refused = post(lead, with_note(kind))
    assert refused.status_code == 422
    assert "kind: is &#x27;text&#x27; in existing answers" in refused.text
    # Not even after a version without the question.
    assert post(lead, SOURCE).status_code == 302
    assert post(lead, with_note(kind)).status_code == 422
    assert post(lead, with_note(kind, "mood_2")).status_code == 302
    other.refresh_from_db()
    answer(other, {"choice": "valid", "mood_2": ["one"] if kind == "choices" else 1})
    assert Resolution.objects.get().value == "valid"


def test_a_question_without_answers_may_get_another_kind(lead: Membership) -> None:
    make_resolution(make_item(lead.project), values={"choice": "valid"})
    assert post(lead, with_note("text")).status_code == 302
    assert post(lead, with_note("scale")).status_code == 302


def test_a_question_that_no_label_answered_may_get_another_kind(lead: Membership) -> None:
    assert post(lead, with_note("text")).status_code == 302
    lead.refresh_from_db()
    member = make_member(lead.project)
    make_item(lead.project)
    answer(member, {"choice": "valid"})
    assert post(lead, with_note("scale")).status_code == 302


def test_a_project_whose_question_was_answered_in_two_kinds_can_save_its_title(
    lead: Membership,
) -> None:
    assert post(lead, with_note("text")).status_code == 302
    lead.refresh_from_db()
    member = make_member(lead.project)
    make_item(lead.project)
    answer(member, {"choice": "valid", "mood": "in words"})
    # As could be done until this was refused.
    source = with_note("scale")
    lead.project.task_type = importing.store_task_type(tomllib.loads(source), source)
    adapted = versions.parse_source(
        lead.project, source.replace('title = "Mood"', 'title = "Their mood"')
    )
    assert not adapted.problems


def test_a_correction_is_of_the_text_that_its_page_showed(lead: Membership) -> None:
    member = make_member(lead.project)
    item = make_item(lead.project)
    shown = take(member).submission()
    now_gold = SOURCE.replace('correctable = "perturbed"', 'correctable = "gold"')
    assert post(lead, now_gold).status_code == 302
    page = {"key": shown.key, "item": shown.item_key, "revision": shown.revision}
    page |= {"text": "A spider has nine legs.", "note": ""}
    refused = browser_of(member).post("/projects/p/label/correct/", page)
    assert refused.status_code == 422
    assert "A spider has nine legs." in refused.text
    assert item.revisions.count() == 1


def test_what_is_still_asked_is_answered_by_the_rules_of_today(lead: Membership) -> None:
    member = make_member(lead.project)
    make_item(lead.project)
    shown = take(member).submission()
    assert post(lead, SOURCE.replace('"score-invariant"', '"harmless"')).status_code == 302
    page = {"key": shown.key, "item": shown.item_key, "revision": shown.revision}
    page |= {"choice": "score-invariant", "comment": "Odd."}
    refused = browser_of(member).post("/projects/p/label/submit/", page)
    assert refused.status_code == 422
    assert "Odd." in refused.text
    assert not Label.objects.exists()


def test_a_question_that_final_labels_answer_keeps_its_kind(lead: Membership) -> None:
    assert post(lead, with_note("text")).status_code == 302
    make_resolution(make_item(lead.project), values={"choice": "valid", "mood": "in words"})
    assert post(lead, with_note("scale")).status_code == 422


def test_a_copy_of_a_project_keeps_the_choices_with_which_it_began(lead: Membership) -> None:
    assert post(lead, SOURCE.replace('"not-relevant"', '"moot"')).status_code == 302
    first = Project.objects.get(slug="p").task_type
    chief = make_member(make_project("copy", version=first), role="lead")
    for value in ("moot", "invalid"):  # one change after the other
        project = Project.objects.get(slug="copy")
        adapted = versions.parse_source(
            project, without(versions.version_source(project.task_type), value)
        )
        versions.save_version(project, adapted, member=chief, shown=project.task_type_id)
    project = Project.objects.get(slug="copy")
    assert versions.former_choices(project).keys() >= {"moot", "invalid"}
    own = [str(one) for one in versions.project_versions(project)]
    assert own[:3] == [f"perturbation-vetting--copy v{number}" for number in (3, 2, 1)]


def test_a_scale_that_labels_use_gets_other_ends_only_after_a_confirmation(
    lead: Membership,
) -> None:
    project = make_project("q", task_type="rating")
    source = tasktypes.load_sources()["rating"]
    make_item(project, texts={"input": "2 + 2", "response": "4"})
    fields = tasktypes.load_task_type(project).fields
    answer(make_member(project), {one.name: one.options[-1].value for one in fields if one.options})
    title = tomllib.loads(source)
    title["fields"][0]["title"] = "Another title"
    longer = tomllib.loads(source)
    longer["fields"][0]["choices"].append({"value": 10, "title": "10"})
    for definition, lost in ((title, []), (longer, [fields[0].title])):
        adapted = versions.parse_source(project, toml_text.write_definition(definition))
        assert adapted.task
        found = versions.find_lost_answers(project, adapted.task)
        assert [one.field for one in found] == lost


def test_right_answers_of_practice_items_count_as_well(lead: Membership) -> None:
    item = make_item(lead.project, purpose="practice", slots=0)
    make_resolution(item, "invalid", source="known", values={"choice": "invalid"})
    page = post(lead, without(SOURCE, "invalid"))
    assert page.status_code == 422
    assert "“Invalid” in 0 labels, and the correct answer of 1 item" in page.text


@pytest.mark.parametrize("place", ["title", "help", "examples"])
def test_a_character_that_cannot_be_stored_is_named_with_its_line(
    lead: Membership, place: str
) -> None:
    changed = re.sub(
        rf'(?m)^{place} = (\[\s*)?"', lambda found: found[0] + "\\u0000", SOURCE, count=1
    )
    assert changed != SOURCE
    answer = post(lead, changed)
    assert answer.status_code == 422
    assert f"{place}: contains the character U+0000" in answer.text


def test_the_preview_is_a_whole_page_without_a_script(lead: Membership) -> None:
    page = browser_of(lead).post("/projects/p/task/preview/", {"source": SOURCE}).text
    assert page.startswith("<!doctype html>")
    script = {"HX-Request": "true"}
    alone = browser_of(lead).post("/projects/p/task/preview/", {"source": SOURCE}, headers=script)
    assert alone.text.lstrip().startswith("<section")


def answer(member: Membership, answers: dict[str, Any]) -> Label:
    from annotation.labelling import queue

    return queue.store_label(member, take(member).submission(answers))


def test_a_choice_that_no_label_has_goes_without_a_word(lead: Membership) -> None:
    assert post(lead, without(SOURCE, "not-relevant")).status_code == 302


def test_texts_that_the_items_do_not_have_cannot_become_required(lead: Membership) -> None:
    make_item(lead.project)
    extra = SOURCE + '\n[[texts]]\nname = "source"\ntitle = "Source"\nrequired = true\n'
    assert "existing items may lack &#x27;source&#x27;" in post(lead, extra).text
    assert post(lead, extra.replace('"Source"\nrequired = true', '"S"\nrequired = false'))


def test_a_version_that_somebody_else_stored_meanwhile_is_not_overrun(lead: Membership) -> None:
    began = lead.project.task_type_id
    post(lead, SOURCE.replace('title = "Valid"', 'title = "First"'))
    answer = post(lead, SOURCE.replace('title = "Valid"', 'title = "Second"'), shown=began)
    assert answer.status_code == 409
    assert "Somebody saved another version" in answer.text
    assert "title = &quot;Second&quot;" in answer.text
    assert tasktypes.load_task_type(Project.objects.get()).deciding.options[0].title == "First"


def test_two_versions_can_be_compared_and_an_old_one_taken_up_again(lead: Membership) -> None:
    post(lead, SOURCE.replace('title = "Valid"', 'title = "Costs points"'))
    new, old = versions.project_versions(Project.objects.get())
    client = browser_of(lead)
    page = client.get(f"/projects/p/task/?old={old.pk}&new={new.pk}").text
    assert "Costs points</ins>" in re.sub(r"</?b>", "", page)
    assert "title = &quot;Valid&quot;" in client.get(f"/projects/p/task/?use={old.pk}").text
    assert client.get("/projects/p/task/?use=x&old=-1&new=99").status_code == 200


def test_the_preview_draws_the_form_with_an_item_or_says_what_is_wrong(lead: Membership) -> None:
    make_item(lead.project, "spider")
    client = browser_of(lead)
    changed = SOURCE.replace('title = "Valid"', 'title = "<b>Costs</b>"')
    page = client.post("/projects/p/task/preview/", {"source": changed}).text
    assert "&lt;b&gt;Costs&lt;/b&gt;" in page
    assert "with spider as an example" in page
    assert "A spider has six legs." in page
    wrong = client.post("/projects/p/task/preview/", {"source": "slug"}).text
    assert "This task type cannot be saved yet." in wrong
    assert TaskTypeVersion.objects.count() == 1


def test_a_version_stored_before_texts_were_kept_is_written_out(lead: Membership) -> None:
    TaskTypeVersion.objects.update(source="")
    page = browser_of(lead).get("/projects/p/task/").text
    assert "slug = &quot;perturbation-vetting--p&quot;" in page
    assert "[[fields.choices]]" in page
    assert post(lead, SOURCE).status_code == 302
    assert TaskTypeVersion.objects.count() == 1


def test_names_of_long_projects_stay_apart() -> None:
    slugs = {versions.version_slug(make_project(f"{'x' * 78}{end}")) for end in "ab"}
    assert len(slugs) == 2
    assert all(len(slug) <= 80 for slug in slugs)


def test_a_text_of_any_size_and_shape_is_answered(lead: Membership) -> None:
    shapes = ["", "\0", "x" * 200_001, '"""', "[[fields]]\n" * 50, "a = {b = 1}\n[a.b]\n"]
    for source in [*shapes, "a = " + "[" * 5000, "a = " + "9" * 5000]:
        assert post(lead, source).status_code == 422
