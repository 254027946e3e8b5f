"""Rounds of practice: what is asked, what is learnt, who gets work."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.errors import Refused
from annotation.labelling import answer_key, qualification, queue
from annotation.models import Event, Label, Mark, Membership, Project, Slot
from annotation.tasktypes import versions
from tests.builders import (
    adapt_task_type,
    make_item,
    make_known,
    make_member,
    make_project,
    remove_question,
    say,
    take,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    """Rounds of two items, both of which must be right, four items to practise on, one of work."""
    project = make_project(practice_items=2, practice_pass=2)
    for number in range(1, 5):
        make_known(project, f"practice-{number}")
    make_item(project, "work")
    return project


@pytest.fixture
def member(project: Project) -> Membership:
    return make_member(project)


@pytest.fixture
def lead(project: Project) -> Membership:
    return make_member(project, role="lead")


def fail(member: Membership, rounds: int = 1) -> None:
    """Answer whole rounds wrong."""
    for _ in range(2 * rounds):
        say(member, take(member), "invalid")


def reload(member: Membership) -> Membership:
    return Membership.objects.select_related("project__task_type").get(pk=member.pk)


def test_practice_comes_before_work_and_who_passes_gets_work(member: Membership) -> None:
    keys = []
    for _ in range(2):
        offer = take(member)
        assert offer.phase == "qualification"
        keys.append(offer.item.key)
        say(member, offer)
    assert len(set(keys)) == 2
    assert take(member).item.key == "work"
    assert reload(member).practised_at


def test_each_answer_is_explained_at_once(member: Membership) -> None:
    right = qualification.build_lesson(say(member, take(member)))
    wrong = qualification.build_lesson(say(member, take(member), "invalid"))
    assert right
    assert wrong
    assert (right.right, wrong.right) == (True, False)
    assert (wrong.known, wrong.explanation) == ({"choice": "valid"}, "It is valid.")


def test_another_round_after_a_failure_has_items_not_seen_before(member: Membership) -> None:
    keys = []
    for choice in ("valid", "invalid", "valid", "valid"):
        offer = take(member)
        keys.append(offer.item.key)
        say(member, offer, choice)
    assert sorted(keys) == [f"practice-{number}" for number in range(1, 5)]
    results = [(one.row.right, one.row.passed) for one in qualification.list_rounds(member)]
    assert results == [(2, True), (1, False)]
    assert take(member).item.key == "work"


def test_who_has_nothing_left_to_practise_on_waits_and_gets_no_work(member: Membership) -> None:
    fail(member, rounds=2)
    waiting = queue.next_offer(member)
    assert isinstance(waiting, queue.Waiting)
    assert waiting.practising
    assert qualification.waits_for_lead(member)


def test_the_order_of_items_is_a_members_own(project: Project) -> None:
    orders = set()
    for _ in range(8):
        member = make_member(project)
        first = take(member).item.key
        assert take(member).item.key == first  # and stays so until it is answered
        orders.add(first)
    assert len(orders) > 1


def test_a_lead_waives_practice(member: Membership, lead: Membership) -> None:
    take(member)
    qualification.waive(member, lead=lead)
    member = reload(member)
    assert take(member).item.key == "work"
    assert not Slot.objects.filter(stage="qualification", state="held").exists()
    with pytest.raises(Refused):
        qualification.waive(member, lead=lead)


def test_a_lead_lets_a_member_start_again_with_items_seen_the_longest_ago(
    member: Membership, lead: Membership
) -> None:
    fail(member, rounds=2)
    first = Label.objects.order_by("pk")[0].item
    qualification.start_new_round(member, lead=lead)
    offer = take(member)
    assert offer.item == first
    say(member, offer)
    say(member, take(member))
    assert reload(member).practised_at
    assert Label.objects.filter(stage="qualification").count() == 6
    assert [one.row.number for one in qualification.list_rounds(member)] == [3, 2, 1]


def test_who_must_start_again_gets_no_work_meanwhile(member: Membership, lead: Membership) -> None:
    for _ in range(2):
        say(member, take(member))
    qualification.start_new_round(member, lead=lead)
    assert qualification.is_due(reload(member))


def test_nobody_starts_again_where_there_is_too_little_to_practise_on(lead: Membership) -> None:
    Project.objects.update(practice_items=5)
    with pytest.raises(Refused):
        qualification.start_new_round(make_member(lead.project), lead=lead)


@pytest.mark.parametrize("role", ["lead", "adjudicator"])
def test_who_can_look_the_answers_up_does_not_practise(project: Project, role: str) -> None:
    assert take(make_member(project, role=role)).item.key == "work"


def test_where_nobody_practises_there_is_work_at_once(project: Project) -> None:
    project.practice_items = 0
    assert take(make_member(project)).item.key == "work"


def test_an_answer_cannot_be_taken_back_once_it_was_explained(member: Membership) -> None:
    made = say(member, take(member))
    assert not qualification.can_undo(made)
    assert queue.undo_label(member) is None
    with pytest.raises(Refused):
        queue.reopen_item(member, made.item.key)
    assert Label.objects.get().withdrawn_at is None


def test_an_answer_sent_twice_counts_once(member: Membership) -> None:
    offer = take(member)
    say(member, offer)
    say(member, offer)
    assert qualification.list_rounds(member)[0].row.answered == 1


def test_a_round_keeps_its_size_when_the_project_changes_it(member: Membership) -> None:
    say(member, take(member))
    Project.objects.update(practice_items=4, practice_pass=4)
    member = reload(member)
    say(member, take(member))
    assert reload(member).practised_at


def test_what_was_learnt_stays_what_was_said_then(member: Membership, lead: Membership) -> None:
    made = say(member, take(member))
    later = timezone.now() + timedelta(minutes=1)
    said = {"choice": "invalid"}
    answer_key.set_answer(member.project, made.item, "practice", said, "Mended.", lead, now=later)
    [lesson] = qualification.list_rounds(member)[0].lessons
    assert (lesson.right, lesson.explanation) == (True, "It is valid.")


def test_who_was_told_the_answer_is_on_record_as_informed(
    member: Membership, lead: Membership
) -> None:
    item = say(member, take(member)).item
    assert Mark.objects.get(member=member, item=item).kind == "seen"
    qualification.waive(member, lead=lead)
    make_known(member.project, "another")
    answer_key.release_item(item, lead)
    member = reload(member)
    offer = take(member)
    while offer.item != item:
        say(member, offer)
        offer = take(member)
    assert say(member, offer).informed


def test_feedback_is_for_the_member_to_read(member: Membership, lead: Membership) -> None:
    fail(member)
    row = qualification.list_rounds(member)[0].row
    qualification.give_feedback(row, " Read the claim first. ", lead=lead)
    shown = qualification.list_rounds(member)[0].row
    assert (shown.feedback, shown.feedback_by) == ("Read the claim first.", lead)
    assert Event.objects.get(kind="practice-feedback").data["text"] == "Read the claim first."


def test_leads_see_who_practises(member: Membership, lead: Membership) -> None:
    fail(member)
    [(who, rounds)] = qualification.list_people([member, lead])
    assert (who, len(rounds)) == (member, 1)


def test_a_known_answer_to_a_question_that_was_removed_is_not_compared() -> None:
    project = make_project(task_type="error-detection", practice_items=1, practice_pass=1)
    item = make_item(project, texts={"input": "2 + 2?", "response": "5"}, slots=0)
    known = {"verdict": "error", "error_type": ["reasoning-correctness"]}
    answer_key.set_answer(project, item, "practice", known, "The sum is 4.", None)
    remove_question(make_member(project, role="lead"), "error_type")
    member = reload(make_member(project))
    answers = {"verdict": "error", "explanation": "It is 4."}
    label = queue.store_label(member, take(member).submission(answers))
    lesson = qualification.build_lesson(label)
    assert lesson
    assert (lesson.right, lesson.known) == (True, {"verdict": "error"})
    assert reload(member).practised_at


def test_where_the_question_that_decides_has_no_known_answer_nobody_is_right() -> None:
    project = make_project(task_type="error-detection", practice_items=1, practice_pass=1)
    item = make_item(project, texts={"input": "2 + 2?", "response": "5"}, slots=0)
    known = {"verdict": "error", "error_type": ["reasoning-correctness"]}
    answer_key.set_answer(project, item, "practice", known, "The sum is 4.", None)
    lead = make_member(project, role="lead")
    renamed = versions.version_source(project.task_type).replace('"verdict"', '"judgement"')
    adapt_task_type(lead, renamed)
    member = reload(make_member(project))
    label = queue.store_label(member, take(member).submission({"judgement": "no_error"}))
    assert qualification.build_lesson(label) is None
    assert not reload(member).practised_at
