"""Items whose right answers are known: set, changed, and made work again."""

from typing import Any

import pytest

from annotation import importing, tasktypes
from annotation.errors import FieldError, Refused
from annotation.labelling import answer_key, correct_answers, queue
from annotation.models import Event, Item, Label, Membership, Project, Resolution, Slot
from formats.rows import Row
from tests.builders import (
    TEXTS,
    correct,
    make_item,
    make_known,
    make_member,
    make_project,
    make_resolution,
    say,
    take,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead() -> Membership:
    return make_member(make_project(), role="lead")


def set_answer(lead: Membership, item: Item, right: str = "invalid", **values: Any) -> Resolution:
    said = {"purpose": "probe", "explanation": "Look again.", **values}
    return answer_key.set_answer(
        lead.project, item, said["purpose"], {"choice": right}, said["explanation"], lead
    )


def current(item: Item) -> Resolution | None:
    return Resolution.objects.current().filter(item=item).first()


def test_an_item_with_a_known_answer_asks_nobody_for_work(lead: Membership) -> None:
    item = make_item(lead.project)
    set_answer(lead, item)
    item.refresh_from_db()
    assert item.purpose == "probe"
    assert Slot.objects.get().state == "closed"
    assert isinstance(queue.next_offer(lead), queue.Waiting)


def test_what_is_known_and_why_stands_with_the_item(lead: Membership) -> None:
    found = set_answer(lead, make_item(lead.project))
    assert (found.value, found.values, found.comment) == (
        "invalid",
        {"choice": "invalid"},
        "Look again.",
    )
    assert (found.source, found.member) == ("known", lead)
    assert Event.objects.get(kind="known").data["values"] == {"choice": "invalid"}


def test_an_answer_that_the_task_does_not_take_is_refused(lead: Membership) -> None:
    item = make_item(lead.project)
    for purpose, right, explanation in [
        ("probe", {"choice": "perhaps"}, "x"),
        ("probe", {}, "x"),
        ("probe", {"choice": "valid", "mood": "good"}, "x"),
        ("practice", {"choice": "valid"}, "  "),
        ("test", {"choice": "valid"}, "x"),
    ]:
        with pytest.raises(Refused):
            answer_key.set_answer(lead.project, item, purpose, right, explanation, lead)
    item.refresh_from_db()
    assert item.purpose == "test"
    assert not Resolution.objects.exists()


def test_an_answer_said_anew_ends_the_one_before_and_keeps_it_on_record(lead: Membership) -> None:
    item = make_item(lead.project)
    set_answer(lead, item, "invalid")
    set_answer(lead, item, "valid", purpose="practice")
    item.refresh_from_db()
    assert [r.value for r in Resolution.objects.order_by("pk")] == ["invalid", "valid"]
    assert (item.purpose, current(item).value) == ("practice", "valid")  # type: ignore[union-attr]


def test_nobody_loses_the_item_that_they_work_on(lead: Membership) -> None:
    item = make_item(lead.project)
    take(lead)
    with pytest.raises(Refused, match="labelling this item now"):
        set_answer(lead, item)


def test_an_item_that_people_have_begun_to_label_waits_until_it_is_resolved() -> None:
    lead = make_member(make_project(overlap=2), role="lead")
    other = make_member(lead.project)
    item = make_item(lead.project)
    say(lead, take(lead))
    with pytest.raises(Refused, match="already has labels"):
        set_answer(lead, item)
    say(other, take(other))
    set_answer(lead, item)
    assert Label.objects.counted().count() == 2


def test_labels_count_again_once_the_item_is_released(lead: Membership) -> None:
    item = make_item(lead.project)
    say(lead, take(lead), "score-invariant")
    set_answer(lead, item, "invalid")
    answer_key.release_item(item, lead)
    item.refresh_from_db()
    held = current(item)
    assert held
    assert (item.purpose, held.value, held.source) == ("test", "score-invariant", "labels")
    assert Slot.objects.get().state == "filled"


def test_a_released_item_is_to_be_labelled_again(lead: Membership) -> None:
    item = make_item(lead.project)
    set_answer(lead, item)
    answer_key.release_item(item, lead)
    assert current(item) is None
    assert take(lead).item == item


def test_a_released_item_that_came_with_its_answer_gets_the_places_that_all_get() -> None:
    lead = make_member(make_project(overlap=2), role="lead")
    item = make_known(lead.project, purpose="probe")
    answer_key.release_item(item, lead)
    assert list(Slot.objects.values_list("state", flat=True)) == ["open", "open"]


def test_a_released_item_of_the_random_share_gets_as_many_places_as_any_of_that_share() -> None:
    lead = make_member(make_project(overlap=1, share_percent=100, share_overlap=3), role="lead")
    item = make_known(lead.project, purpose="probe")
    answer_key.release_item(item, lead)
    assert list(Slot.objects.values_list("state", flat=True)) == ["open"] * 3


def test_what_an_import_had_resolved_holds_again_after_the_release(lead: Membership) -> None:
    item = make_item(lead.project, slots=0)
    make_resolution(item, "score-invariant")
    set_answer(lead, item, "valid")
    set_answer(lead, item, "invalid", purpose="practice")
    answer_key.release_item(item, lead)
    held = current(item)
    assert held
    assert (held.value, held.source, held.rule) == (
        "score-invariant",
        "imported",
        "accepted at import",
    )
    assert not Slot.objects.exists()


def test_only_an_item_with_a_known_answer_is_released(lead: Membership) -> None:
    with pytest.raises(Refused):
        answer_key.release_item(make_item(lead.project), lead)


def test_practice_keeps_as_many_items_as_a_round_takes() -> None:
    lead = make_member(make_project(practice_items=2, practice_pass=1), role="lead")
    first, *_ = (make_known(lead.project) for _ in range(3))
    answer_key.release_item(first, lead)
    with pytest.raises(Refused, match="too few"):
        answer_key.release_item(Item.objects.filter(purpose="practice")[0], lead)


def test_an_item_that_was_corrected_has_no_known_answer_until_it_is_said_anew(
    lead: Membership,
) -> None:
    project = lead.project
    project.probe_every = 1
    project.save()
    item = make_known(project, purpose="probe")
    make_item(project)
    annotator = make_member(project)
    correct(annotator, take(annotator))
    assert answer_key.items_with_answer(project, "probe") == []
    set_answer(lead, item)
    assert answer_key.items_with_answer(project, "probe") == [item]


def test_a_row_says_what_is_right_as_one_answer_or_by_field() -> None:
    task = tasktypes.parse_definition(tasktypes.load_definitions()["error-detection"])
    told = {"known": "no_error", "explanation": "All holds."}
    found = correct_answers.parse_row(task, "practice", told)
    assert found == correct_answers.CorrectAnswer("no_error", {"verdict": "no_error"}, "All holds.")
    by_field = '{"verdict": "error", "error_type": ["reasoning-correctness"], "explanation": "2"}'
    found = correct_answers.parse_row(task, "probe", {"known": by_field})
    assert found
    assert found.values == {"verdict": "error", "error_type": ["reasoning-correctness"]}
    assert correct_answers.parse_row(task, "test", {}) is None


@pytest.mark.parametrize(
    "purpose, row, field",
    [
        ("practice", {"known": "no_error"}, "explanation"),
        ("practice", {"explanation": "Why"}, "known"),
        ("probe", {"known": "maybe"}, "known"),
        ("probe", {"known": "{not json"}, "known"),
        ("probe", {"known": ["error"]}, "known"),
        ("probe", {"known": "error", "explanation": 5}, "explanation"),
    ],
)
def test_a_row_that_does_not_fit_is_turned_down_by_the_name_of_its_column(
    purpose: str, row: dict[str, Any], field: str
) -> None:
    task = tasktypes.parse_definition(tasktypes.load_definitions()["error-detection"])
    with pytest.raises(FieldError) as refused:
        correct_answers.parse_row(task, purpose, row)
    assert refused.value.field == field


def test_only_what_is_known_is_compared_and_several_at_once_in_any_order() -> None:
    assert correct_answers.matches_answer({"a": "x", "b": ["2", "1"]}, {"b": ["1", "2"]})
    assert not correct_answers.matches_answer({"a": "x"}, {"a": "x", "b": ["1"]})
    assert not correct_answers.matches_answer({"a": "y"}, {"a": "x"})


def test_the_order_is_a_members_own_and_always_the_same() -> None:
    project: Project = make_project()
    one, other = make_member(project), make_member(project)
    found = [make_item(project) for _ in range(12)]
    assert answer_key.order_for_member(one, found) == answer_key.order_for_member(one, found[::-1])
    assert answer_key.order_for_member(one, found) != answer_key.order_for_member(other, found)


def test_the_order_follows_from_names_alone_and_not_from_numbers_of_the_database() -> None:
    make_item(make_project())  # so that numbers are others than in a fresh database
    project = make_project("spiders")
    found = [make_item(project, key) for key in "abcdef"]
    order = [
        item.key for item in answer_key.order_for_member(make_member(project, alias="ada"), found)
    ]
    # By SHA-256 of "known", "spiders", "ada" and the key, with NUL between them.
    assert order == ["a", "f", "c", "b", "e", "d"]


def imported(project: Project, **values: Any) -> importing.ItemImportReport:
    """One row of practice, imported."""
    row = {"key": "p", "category": "entity", "purpose": "practice", "known": "invalid", **TEXTS}
    row |= {"explanation": "Six, not eight.", "author": "me", **values}
    task = tasktypes.load_task_type(project)
    drafts = importing.parse_items([Row("rows.jsonl", 1, row)], task)
    return importing.store_items(project, drafts)


def test_an_import_brings_items_with_known_answers(lead: Membership) -> None:
    assert imported(lead.project).new == 1
    [item] = answer_key.items_with_answer(lead.project, "practice")
    held = current(item)
    assert held
    assert (held.value, held.comment, held.source) == ("invalid", "Six, not eight.", "known")
    assert item.fields == {"author": "me"}
    assert not Slot.objects.exists()


def test_the_same_row_again_is_nothing_new_and_another_answer_a_conflict(
    lead: Membership,
) -> None:
    imported(lead.project)
    assert imported(lead.project).unchanged == 1
    [conflict] = imported(lead.project, known="valid").conflicts
    assert "known" in conflict.reason
    assert Resolution.objects.count() == 1


def test_a_row_of_practice_without_an_explanation_is_bad(lead: Membership) -> None:
    [bad] = imported(lead.project, explanation="").bad
    assert bad.field == "explanation"
    [bad] = imported(lead.project, repeats="other").bad
    assert bad.field == "repeats"


def test_rows_to_work_on_keep_columns_of_those_names_as_fields(lead: Membership) -> None:
    imported(lead.project, purpose="test")
    item = Item.objects.get()
    assert item.fields == {"author": "me", "known": "invalid", "explanation": "Six, not eight."}
    assert Slot.objects.count() == 1
