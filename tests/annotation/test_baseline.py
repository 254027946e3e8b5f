"""People to compare evaluators with: a seeded sample, labelled by who never saw the items."""

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.labelling import answer_key, human_baseline, queue, visibility
from annotation.models import Item, Label, Membership, Slot, Stage
from annotation.reports import grouping
from tests.builders import (
    browser_of,
    make_item,
    make_member,
    make_project,
    make_resolution,
    say,
    take,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead() -> Membership:
    return make_member(make_project(), "lead")


def resolved(lead: Membership, number: int, value: str = "valid", **values: Any) -> list[Item]:
    items = [make_item(lead.project, slots=0, **values) for _ in range(number)]
    for item in items:
        make_resolution(item, value)
    return items


def make(lead: Membership, **values: Any) -> human_baseline.SampleResult:
    wanted = {"size": 2, "raters": 2, "by": ["category"], "seed": 1, "now": timezone.now()}
    return human_baseline.draw_sample(lead, **{**wanted, **values})


def drawn() -> set[str]:
    return set(Slot.objects.filter(stage=Stage.BASELINE).values_list("item__key", flat=True))


def test_so_many_resolved_items_of_each_group_are_drawn(lead: Membership) -> None:
    resolved(lead, 5), resolved(lead, 1, category="grammar")
    make_item(lead.project)  # not resolved, so there is nothing to compare with
    made = make(lead)
    assert [(group.name, group.available, group.drawn) for group in made.groups] == [
        ("grammar", 1, 1),
        ("number-errors", 5, 2),
    ]
    assert (made.items, made.new_slots) == (3, 6)


def test_items_that_are_left_out_of_the_data_set_are_not_drawn() -> None:
    lead = make_member(make_project(task_type="error-detection"), "lead")
    resolved(lead, 2, "error", category=""), resolved(lead, 3, "not_sure", category="")
    made = make(lead, size=5, by=[])
    assert [(group.available, group.drawn) for group in made.groups] == [(2, 2)]
    held = Slot.objects.filter(stage=Stage.BASELINE).values_list("item__resolutions__value")
    assert {value for (value,) in held} == {"error"}


def test_the_same_seed_draws_the_same_and_a_larger_sample_holds_the_smaller(
    lead: Membership,
) -> None:
    resolved(lead, 20)
    make(lead, size=5)
    before = drawn()
    assert make(lead, size=5).new_slots == 0
    make(lead, size=8)
    assert before < drawn()
    assert len(drawn()) == 8


def test_another_seed_draws_others(lead: Membership) -> None:
    resolved(lead, 20)
    make(lead, size=5, seed=1)
    first = drawn()
    Slot.objects.all().delete()
    make(lead, size=5, seed=2)
    assert drawn() != first


def test_items_are_grouped_by_a_field_of_their_own(lead: Membership) -> None:
    resolved(lead, 2, fields={"model": "A"}), resolved(lead, 2, fields={"model": "B"})
    assert "model" in [one.name for one in grouping.list_groupings(lead.project)]
    assert [group.name for group in make(lead, size=1, by=["model"]).groups] == ["A", "B"]


def test_so_many_are_drawn_of_each_task_and_model_as_study_001_does(lead: Membership) -> None:
    for task in ("sums", "facts"):
        for model in ("A", "B"):
            resolved(lead, 2, fields={"task": task, "model": model})
    made = make(lead, size=1, by=["task", "model"])
    assert [(one.name, one.drawn) for one in made.groups] == [
        ("facts · A", 1),
        ("facts · B", 1),
        ("sums · A", 1),
        ("sums · B", 1),
    ]


def test_more_raters_open_more_places_and_closed_ones_are_used_again(lead: Membership) -> None:
    resolved(lead, 1)
    make(lead, raters=1)
    assert human_baseline.end_sample(lead) == 1
    assert make(lead, raters=2).new_slots == 2
    assert Slot.objects.filter(stage=Stage.BASELINE).count() == 2


def test_people_get_items_that_they_never_labelled_nor_saw(lead: Membership) -> None:
    [item] = resolved(lead, 1)
    worker, reader, fresh = (make_member(lead.project) for _ in range(3))
    Slot.objects.create(project=lead.project, item=item, number=1, position=1)
    say(worker, take(worker))
    visibility.record_seen(reader, item, now=timezone.now())
    made = make(lead)
    for member in (worker, reader):
        assert isinstance(queue.next_offer(member), queue.Waiting)
    assert say(fresh, take(fresh)).stage == Stage.BASELINE
    # Of lead, worker, reader and fresh, two are new to it: as many as there shall be raters.
    assert made.short == 0
    assert make(lead, raters=3).short == 1


def test_who_can_label_items_of_the_sample_is_told_that_they_are_left(lead: Membership) -> None:
    [item, other] = resolved(lead, 2)
    worker, fresh, late = (make_member(lead.project) for _ in range(3))
    Slot.objects.create(project=lead.project, item=item, number=1, position=1)
    say(worker, take(worker))
    visibility.record_seen(worker, other, now=timezone.now())
    make(lead, raters=1)
    assert [queue.load_progress(one).todo for one in (worker, fresh, late)] == [0, 2, 2]
    page = browser_of(fresh).get(reverse("project", args=[lead.project.slug])).text
    assert "Label next item" in page
    took = take(fresh)
    cache.clear()
    assert [queue.load_progress(one).todo for one in (fresh, late)] == [2, 1], "one is held"
    say(fresh, took)
    assert queue.load_progress(fresh).todo == 1


def test_a_label_of_the_sample_changes_no_resolution(lead: Membership) -> None:
    [item] = resolved(lead, 1)
    make(lead)
    say(member := make_member(lead.project), take(member), "invalid")
    assert item.resolutions.get().value == "valid"


def test_each_persons_agreement_has_an_interval(lead: Membership) -> None:
    items = resolved(lead, 4)
    make(lead, size=4, raters=1)
    member = make_member(lead.project, alias="Ann")
    for choice in ("valid", "valid", "invalid", "valid"):
        say(member, take(member), choice)
    [person] = human_baseline.agreement_by_person(lead.project)
    assert (person.member, person.labels, person.agreeing) == (member, 4, 3)
    # Plain Wilson at 3 of 4, since no two items share a cluster; z2 = 3.8415: centre (0.75 + z2/8)
    # / (1 + z2/4) = 1.2302 / 1.9604 = 0.6275; half width 1.96/1.9604 x sqrt(0.1875/4 + z2/64).
    assert len({item.cluster for item in items}) == 4
    assert person.share.low == pytest.approx(0.6275 - 0.3269, abs=0.001)
    assert person.share.high == pytest.approx(0.6275 + 0.3269, abs=0.001)
    progress = human_baseline.load_progress(lead.project)
    assert (progress.items, progress.places, progress.filled) == (4, 4, 4)


def test_rows_tell_what_was_said_and_what_is_held_true(lead: Membership) -> None:
    resolved(lead, 1)
    make(lead)
    say(member := make_member(lead.project, alias="Ann"), take(member), "invalid", comment="No.")
    [row] = human_baseline.label_rows(lead.project)
    assert tuple(row) == human_baseline.COLUMNS
    assert (row["annotator"], row["choice"], row["resolution"]) == ("Ann", "invalid", "valid")
    assert row["agrees"] is False


def test_labels_of_texts_that_were_corrected_since_are_compared_with_nothing(
    lead: Membership,
) -> None:
    [item] = resolved(lead, 1)
    make(lead)
    say(member := make_member(lead.project), take(member))
    item.resolutions.get().end(timezone.now())
    assert human_baseline.agreement_by_person(lead.project) == []
    [row] = human_baseline.label_rows(lead.project)
    assert (row["resolution"], row["agrees"]) == (None, None)
    assert Label.objects.get().counted


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 open labels are"), (1, "1 open label is"), (2, "2 open labels are")]
)
def test_a_lead_is_told_how_many_labels_were_cancelled(
    client: Client, lead: Membership, size: int, words: str
) -> None:
    resolved(lead, 2)
    if size:
        make(lead, size=size, raters=1)
    assert lead.account
    client.force_login(lead.account)
    place = reverse("baseline", args=[lead.project.slug])
    page = client.post(place, {"end": "1"}, follow=True).content.decode()
    assert f"{words} cancelled. Existing labels stay." in page


def test_an_item_that_was_skipped_and_opened_again_still_belongs_to_the_baseline(
    lead: Membership,
) -> None:
    first, member = make_member(lead.project), make_member(lead.project)
    make_item(lead.project)
    say(first, take(first))
    make(lead, size=1)
    offer = take(member)
    queue.skip_item(member, offer.submission())
    again = queue.reopen_item(member, offer.item.key)
    assert (again.slot.stage, again.slot.member) == (Stage.BASELINE, member)
    label = say(member, again)
    assert (label.stage, label.counted) == (Stage.BASELINE, True)


def test_items_that_became_control_items_leave_the_figures_of_people(lead: Membership) -> None:
    items = resolved(lead, 3)
    make(lead, size=3, raters=1)
    ann = make_member(lead.project, alias="ann")
    for _ in items:
        say(ann, take(ann))
    answer_key.set_answer(lead.project, items[0], "probe", {"choice": "invalid"}, "It is.", None)
    [found] = human_baseline.agreement_by_person(lead.project)
    assert (found.labels, found.agreeing) == (2, 2)
    assert {row["item"] for row in human_baseline.label_rows(lead.project)} == {
        item.key for item in items[1:]
    }
