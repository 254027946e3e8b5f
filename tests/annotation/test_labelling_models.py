"""Drafts, comments, marks, labels and places as their tables tell of them."""

from datetime import timedelta
from itertools import pairwise

import pytest
from django.utils import timezone

from annotation.models import (
    Account,
    Comment,
    Draft,
    Item,
    Label,
    Mark,
    Membership,
    PracticeRound,
    Project,
    Reason,
    Resolution,
    Slot,
    Stage,
)
from tests.annotation.test_agreement import make_label
from tests.builders import make_item, make_member, make_project, make_resolution, make_slot

pytestmark = pytest.mark.django_db

NOW = timezone.now()


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def member(project: Project) -> Membership:
    return make_member(project)


@pytest.fixture
def item(project: Project) -> Item:
    return make_item(project, "a")


def make_comment(item: Item, member: Membership, minutes: int = 0, **values: object) -> Comment:
    at = NOW + timedelta(minutes=minutes)
    return Comment.objects.create(item=item, member=member, text="So.", created_at=at, **values)


def delete(item: Item) -> None:
    Item.objects.filter(pk=item.pk).update(deleted_at=NOW)


def test_what_belongs_to_a_deleted_item_is_shown_no_more(
    project: Project, item: Item, member: Membership
) -> None:
    Draft.objects.create(member=member, item=item, revision=1)
    Mark.objects.create(member=member, item=item, kind="flag")
    make_comment(item, member).mentions.add(member)
    make_slot(item, number=2, reserved_for=member)
    make_label(item, member, "valid")
    shown = (
        lambda: Draft.objects.of_member(member.pk).count(),
        lambda: Mark.objects.for_my_items().count(),
        lambda: Comment.objects.in_project(project).count(),
        lambda: Comment.objects.naming(member).count(),
        lambda: Slot.objects.kept_for(member.pk).count(),
        lambda: len(Slot.objects.kept_counts()),
        lambda: Label.objects.for_strip().count(),
        lambda: Label.objects.for_agreement(project, Stage.LABEL).count(),
        lambda: Label.objects.state()["labels"],
    )
    assert [look() for look in shown] == [1] * len(shown)
    delete(item)
    assert [look() for look in shown] == [0] * len(shown)


def test_members_who_are_suspended_or_cannot_sign_in_manage_nothing(project: Project) -> None:
    leads = {
        name: make_member(project, role="lead", alias=name)
        for name in ("active", "suspended", "closed")
    }
    make_member(project, role="annotator")
    Membership.objects.filter(pk=leads["suspended"].pk).update(active=False)
    Account.objects.filter(pk=leads["closed"].account_id).update(is_active=False)
    found = Membership.objects.in_project(project)
    with_role = found.with_role_in(["lead"]).values_list("alias", flat=True)
    assert set(with_role) == {"active", "closed"}
    assert set(found.who_manage().values_list("alias", flat=True)) == {"active"}


def test_a_mark_is_in_force_until_it_ends(item: Item, member: Membership) -> None:
    mark = Mark.objects.create(member=member, item=item, kind="flag")
    assert list(Mark.objects.of_member(member.pk, "flag")) == [mark]
    assert not Mark.objects.of_member(member.pk, "other").exists()
    Mark.objects.update(ended_at=NOW)
    assert not Mark.objects.of_member(member.pk, "flag").exists()


def test_comments_go_by_their_numbers_also_when_one_before_was_taken_back(
    project: Project, item: Item, member: Membership
) -> None:
    later = make_comment(item, member, 2)
    first = make_comment(item, member, 1, withdrawn_at=NOW)
    other = make_comment(make_item(project, "b"), member)
    ordered = Comment.objects.order_by("created_at")
    assert [ordered.called(item, number) for number in (-1, 0, 1, 2, 3)] == [
        None, None, first, later, None,
    ]  # fmt: skip
    listed = Comment.objects.of_item(item).for_page(member)
    assert [(one.pk, one.number) for one in listed] == [(later.pk, 2)]
    assert [one.number for one in Comment.objects.for_page(member)] == [1, 1, 2]
    assert set(Comment.objects.in_project(project)) == {later, other}


def test_of_a_draft_that_was_sent_only_a_correction_is_left(item: Item, member: Membership) -> None:
    whole = {"answers": {}, "text": "Eight.", "note": "So."}
    for data, left in ((whole, {"text": "Eight.", "note": "So."}), ({"note": "So."}, None)):
        draft = Draft.objects.create(member=member, item=item, revision=1, data=data)
        draft.sent()
        found = Draft.objects.filter(pk=draft.pk).values_list("data", flat=True).first()
        assert found == left
        Draft.objects.all().delete()


@pytest.mark.parametrize(
    "right, is_finished, passed",
    [(2, True, True), (3, True, True), (1, True, False), (3, False, False)],
)
def test_a_round_is_passed_with_as_many_right_answers_as_it_needs(
    right: int, is_finished: bool, passed: bool
) -> None:
    finished_at = NOW if is_finished else None
    held = PracticeRound(size=4, needed=2, right=right, finished_at=finished_at)
    assert held.passed is passed


def test_labels_count_until_they_give_way_or_speak_of_other_texts(
    item: Item, member: Membership
) -> None:
    label = make_label(item, member, "valid")
    states = [Label.objects.state()]
    assert (Label.objects.current().count(), Label.objects.not_counted().count()) == (1, 0)
    label.stop_counting()
    states.append(Label.objects.state())
    assert (Label.objects.current().count(), Label.objects.not_counted().count()) == (1, 1)
    label.give_way()
    states.append(Label.objects.state())
    assert (Label.objects.current().count(), Label.objects.not_counted().count()) == (0, 1)
    label.withdraw(NOW)
    states.append(Label.objects.state())
    assert all(one != other for one, other in pairwise(states))
    label.refresh_from_db()
    assert (label.current, label.counted, label.withdrawn_at) == (False, False, NOW)


def test_agreement_is_of_one_stage_and_category(
    project: Project, item: Item, member: Membership
) -> None:
    label = make_label(item, member, "valid")
    of = Label.objects.for_agreement
    assert list(of(project, Stage.LABEL)) == [label]
    assert list(of(project, Stage.LABEL, "number-errors")) == [label]
    assert not of(project, Stage.LABEL, "entity").exists()
    assert not of(project, Stage.LABEL, "\0").exists()
    assert not of(project, Stage.BLIND).exists()


def test_a_final_label_holds_until_it_ends(item: Item) -> None:
    held = make_resolution(item)
    before = Resolution.objects.state()
    assert list(Resolution.objects.current()) == [held]
    held.end(NOW)
    assert Resolution.objects.state() != before
    assert Resolution.objects.state()["ended"] == 1
    assert not Resolution.objects.current().exists()


def test_a_place_goes_back_to_all_unless_it_was_made_for_one_person(
    item: Item, member: Membership
) -> None:
    kept = make_slot(item, number=2, reserved_for=member)
    named = make_slot(item, number=3, reserved_for=member, reason=Reason.NAMED)
    for slot in (kept, named):
        slot.unreserve()
        slot.refresh_from_db()
        assert (slot.reserved_for, slot.returned) == (None, True)
    assert (kept.state, named.state) == (Slot.State.OPEN, Slot.State.CLOSED)


def test_a_place_that_is_given_back_is_looked_at_first(item: Item, member: Membership) -> None:
    until = NOW + timedelta(minutes=5)
    own = make_slot(item, number=2, stage=Stage.QUALIFICATION)
    for slot, state in ((item.slots.get(number=1, stage=Stage.LABEL), "open"), (own, "closed")):
        slot.hold(member.pk, until, ahead=True)
        slot.refresh_from_db()
        assert (slot.state, slot.member, slot.held_until, slot.ahead) == (
            "held",
            member,
            until,
            True,
        )
        slot.release()
        slot.refresh_from_db()
        assert (slot.state, slot.member, slot.held_until, slot.ahead, slot.returned) == (
            state, None, None, False, True,
        )  # fmt: skip
        slot.hold(member.pk, until, ahead=True)
        slot.fill(member.pk)
        slot.refresh_from_db()
        assert (slot.state, slot.held_until, slot.ahead) == ("filled", None, False)
        slot.reopen()
        slot.refresh_from_db()
        assert (slot.state, slot.member, slot.returned) == ("open", None, True)
        slot.close()
        slot.refresh_from_db()
        assert (slot.state, slot.held_until) == ("closed", None)
