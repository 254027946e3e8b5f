"""A pilot: everybody labels the same few items before the rest opens."""

from datetime import datetime
from itertools import count

import pytest
from django.utils import timezone

from annotation.errors import Refused
from annotation.labelling import assignment, bulk_changes, pilot, queue
from annotation.labelling.correct_answers import PROBE
from annotation.labelling.queue import Offer
from annotation.models import Item, Label, Membership, Project, Slot
from annotation.projects import invitations, members
from annotation.projects.invitations import InvitationRequest
from tests.builders import (
    browser_of,
    make_account,
    make_item,
    make_known,
    make_member,
    make_project,
    say,
)

pytestmark = pytest.mark.django_db

CATEGORIES = ("number-errors", "spelling-errors", "wrong-formula")


@pytest.fixture
def lead() -> Membership:
    project = make_project(overlap=2, order="random", order_seed=4)
    for number in range(12):
        make_item(project, f"item-{number}", category=CATEGORIES[number // 6])
    return make_member(project, role="lead")


@pytest.fixture
def people(lead: Membership) -> list[Membership]:
    return [make_member(lead.project, alias=alias) for alias in ("Ann", "Bob", "Cem")]


def fresh(member: Membership) -> Membership:
    return Membership.objects.select_related("project__task_type").get(pk=member.pk)


def label_all(member: Membership, most: int = 50) -> list[str]:
    """Label what the member gets, and return the keys."""
    labelled: list[str] = []
    while len(labelled) < most:
        offer = queue.next_offer(fresh(member), now=timezone.now())
        if not isinstance(offer, Offer):
            break
        say(fresh(member), offer)
        labelled.append(offer.item.key)
    return labelled


def begin(lead: Membership, number: int = 4) -> set[str]:
    pilot.begin(lead, number, now=timezone.now())
    chosen = Project.objects.get(pk=lead.project_id).pilot
    return set(Item.objects.filter(pk__in=chosen).values_list("key", flat=True))


def test_everybody_gets_the_pilot_items_and_nothing_else_until_it_ends(
    lead: Membership, people: list[Membership]
) -> None:
    keys = begin(lead)
    assert [set(label_all(member)) for member in people] == [keys] * 3
    progress = pilot.load_progress(fresh(lead).project)
    assert (progress.items, progress.finished) == (4, 3)
    pilot.end(fresh(lead))
    assert label_all(people[0], most=1)[0] not in keys


def test_a_pilot_that_is_ended_while_it_begins_leaves_nothing_reserved(
    lead: Membership, people: list[Membership], monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve, calls = assignment.reserve_slot, count(1)

    def reserve_and_end(item: Item, member: Membership, now: datetime) -> bool:
        """The first item is reserved for everybody when another lead ends the pilot."""
        done = reserve(item, member, now)
        if next(calls) == len(people):
            pilot.end(fresh(lead))
        return done

    monkeypatch.setattr(assignment, "reserve_slot", reserve_and_end)
    pilot.begin(lead, 4, now=timezone.now())
    assert next(calls) == len(people) + 1
    assert not Slot.objects.exclude(reserved_for=None).exclude(state=Slot.State.CLOSED).exists()


def test_pilot_items_come_from_all_categories_and_one_for_each_question(
    lead: Membership, people: list[Membership]
) -> None:
    keys = begin(lead, 4)
    found = Item.objects.filter(key__in=keys)
    assert (
        sorted(found.values_list("category", flat=True))
        == [CATEGORIES[0]] * 2 + [CATEGORIES[1]] * 2
    )
    assert found.values("cluster").distinct().count() == 4


def test_whoever_joins_a_pilot_gets_its_items(lead: Membership, people: list[Membership]) -> None:
    keys = begin(lead)
    wanted = InvitationRequest("Dov", "annotator")
    made, _ = invitations.create_invitation(lead, wanted, now=timezone.now())
    dov = invitations.accept(made, make_account(), now=timezone.now())
    assert set(label_all(dov)) == keys


def test_slots_that_nobody_opened_are_gone_after_the_pilot(
    lead: Membership, people: list[Membership]
) -> None:
    keys = begin(lead)
    assert set(label_all(people[0])) == keys
    pilot.end(fresh(lead))
    left = Slot.objects.at_work().in_use().filter(item__key__in=keys)
    # One more label, as the settings want two.
    assert left.count() == 4
    assert not left.filter(reserved_for__isnull=False).exists()
    assert len(label_all(people[1])) == 12


def test_whoever_comes_back_or_becomes_an_annotator_gets_the_pilot_items(
    lead: Membership, people: list[Membership]
) -> None:
    eva = make_member(lead.project, alias="Eva", role="researcher")
    members.suspend(lead, people[0])
    keys = begin(lead)
    members.restore(lead, people[0])
    members.change_role(lead, eva, "annotator")
    assert set(label_all(people[0])) == set(label_all(eva)) == keys


def test_an_excluded_pilot_item_is_not_waited_for(
    lead: Membership, people: list[Membership]
) -> None:
    keys = begin(lead)
    first = Item.objects.filter(key=min(keys))
    bulk_changes.change_items(lead, first, "exclude", "", now=timezone.now())
    assert len(label_all(people[0])) == 3
    progress = pilot.load_progress(fresh(lead).project)
    assert progress.finished == 1
    assert (people[0], 3, 0) in progress.people


def test_no_control_item_comes_during_a_pilot(lead: Membership, people: list[Membership]) -> None:
    for number in range(5):
        make_known(lead.project, f"known-{number}", purpose=PROBE)
    Project.objects.filter(pk=lead.project_id).update(probe_every=1)
    keys = begin(fresh(lead))
    assert set(label_all(people[0])) == keys
    pilot.end(fresh(lead))
    assert not set(label_all(people[0], most=3)) & keys
    assert Label.objects.filter(stage="control").exists()


def test_leads_are_not_held_to_the_pilot(lead: Membership, people: list[Membership]) -> None:
    keys = begin(lead)
    # The slots of the pilot items are reserved.
    assert len(set(label_all(lead)) - keys) == 8


def test_what_a_pilot_needs_is_said(lead: Membership) -> None:
    with pytest.raises(Refused, match="no annotators yet"):
        begin(lead)
    make_member(lead.project, alias="Ann")
    with pytest.raises(Refused, match="2 to 100"):
        begin(lead, 1)
    with pytest.raises(Refused, match="No pilot is running"):
        pilot.end(lead)
    begin(lead)
    with pytest.raises(Refused, match="running already"):
        begin(lead)


def test_the_pages_of_a_pilot(lead: Membership, people: list[Membership]) -> None:
    client, ann = browser_of(lead), browser_of(people[0])
    path = f"/projects/{lead.project.slug}/pilot/"
    assert "3 annotators take part" in client.get(path).content.decode()
    assert client.post(path, {"items": "1"}).status_code == 422
    page = client.post(path, {"items": "4"}, follow=True).content.decode()
    assert "every annotator labels the same 4 items" in page
    assert "0 of 3 annotators have finished" in page
    home = f"/projects/{lead.project.slug}/"
    assert "<dt>Left for you</dt><dd>4</dd>" in ann.get(home).content.decode()
    label_all(people[0])
    assert "Valid 1" in client.get(path).content.decode()
    assert "of 3 annotators finished the pilot" in client.get(home).content.decode()
    waiting = ann.get(f"{home}label/").content.decode()
    assert "You have labelled all items of the pilot" in waiting
    asked = client.post(path, {"end": "on"})
    assert asked.status_code == 422
    assert "2 annotators have not finished:" in asked.content.decode()
    assert Project.objects.get(pk=lead.project_id).pilot
    for person in people[1:]:
        label_all(person)
    assert "The pilot has ended" in client.post(path, {"end": "on"}, follow=True).content.decode()


def test_a_pilot_can_end_before_everybody_has_finished(
    lead: Membership, people: list[Membership]
) -> None:
    client, path = browser_of(lead), f"/projects/{lead.project.slug}/pilot/"
    client.post(path, {"items": "4"})
    assert 'value="anyway"' in client.post(path, {"end": "on"}).content.decode()
    said = client.post(path, {"end": "anyway"}, follow=True).content.decode()
    assert "The pilot has ended" in said
    assert not Project.objects.get(pk=lead.project_id).pilot
