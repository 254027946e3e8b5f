"""What waits for a further annotator after a disagreement moves when the lead wants it to."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.labelling import assignment, queue
from annotation.models import Item, Membership, Project, Resolution, Role, Slot
from annotation.settings import project_settings
from operation.integrity.labelling import find_wrong_slot_counts
from tests.builders import browser_of, make_item, make_member, make_project, say, take

pytestmark = pytest.mark.django_db


class Team:
    """Two annotators and a lead; a third label is asked for after a disagreement."""

    def __init__(self, **values: Any) -> None:
        self.project: Project = make_project(**{"overlap": 2, "disputed_overlap": 3, **values})
        self.people = [make_member(self.project) for _ in range(2)]
        self.lead = make_member(self.project, Role.LEAD)

    def label(self, key: str, *choices: str) -> Item:
        item = make_item(self.project, key)
        for person, choice in zip(self.people, choices, strict=False):
            say(person, take(person), choice)
        return item

    def post(self, who: Membership | None = None) -> int:
        url = reverse("adjudicate", args=[self.project.slug])
        return browser_of(who or self.lead).post(url, {"do": "stop-waiting"}).status_code

    def shown(self) -> str:
        url = reverse("adjudicate", args=[self.project.slug])
        return browser_of(self.lead).get(url).content.decode()


def to_decide() -> set[str]:
    slots = Slot.objects.filter(stage="adjudicate", state="open")
    return set(slots.values_list("item__key", flat=True))


def open_labels(item: Item) -> int:
    return Slot.objects.filter(item=item, stage="label", state="open").count()


@pytest.fixture
def team() -> Team:
    return Team()


def test_what_waits_for_a_third_annotator_is_told_and_can_be_decided_at_once(team: Team) -> None:
    disputed = team.label("disputed", "valid", "invalid")
    agreed = team.label("agreed", "valid", "valid")
    fresh = team.label("fresh")
    assert (open_labels(disputed), to_decide()) == (1, set())
    assert "<strong>1 item waits for another annotator</strong>" in team.shown()
    assert team.post(team.people[0]) == 403
    assert team.post(make_member(team.project, Role.ADJUDICATOR)) == 403
    assert team.post() == 302
    assert to_decide() == {"disputed"}
    assert (open_labels(disputed), open_labels(fresh)) == (0, 2)
    assert Resolution.objects.get().item == agreed
    assert "wait for another annotator" not in team.shown()


def test_a_decision_that_waits_asks_for_no_more_labels_when_one_is_corrected(team: Team) -> None:
    disputed = team.label("disputed", "valid", "invalid")
    team.post()
    ana = team.people[0]
    say(ana, queue.reopen_item(ana, "disputed"), "score-invariant")
    assert (open_labels(disputed), to_decide()) == (0, {"disputed"})


def test_an_item_that_everybody_has_labelled_waits_for_nobody() -> None:
    team = Team(overlap=3, disputed_overlap=0)
    Membership.objects.filter(pk=team.lead.pk).update(active=False)
    agreed, disputed = team.label("agreed", "valid", "valid"), team.label("x", "valid", "invalid")
    team.label("fresh")

    def stuck() -> set[Item]:
        return set(assignment.stuck_items(team.project))

    assert stuck() == {agreed, disputed}
    third = make_member(team.project)
    assert stuck() == set()
    Membership.objects.filter(pk=third.pk).update(active=False)
    assert stuck() == {agreed, disputed}
    reader = make_member(team.project, Role.RESEARCHER)
    assert assignment.stop_waiting(reader, now=timezone.now()) == 2
    assert Resolution.objects.get().item == agreed
    assert to_decide() == {"x"}


def test_a_lower_number_after_a_disagreement_applies_to_what_waits_already(team: Team) -> None:
    disputed = team.label("disputed", "valid", "invalid")
    later = team.label("later", "valid", "invalid")
    values = {"disputed_overlap": 5}
    project_settings.apply_change(team.project, team.lead, values)
    assert (open_labels(disputed), to_decide()) == (1, set())
    project_settings.apply_change(team.project, team.lead, {"disputed_overlap": 0})
    assert to_decide() == {"disputed", "later"}
    assert open_labels(disputed) == open_labels(later) == 0


def test_one_slot_of_several_stays_if_the_new_number_asks_for_it() -> None:
    team = Team(disputed_overlap=4)
    disputed = team.label("disputed", "valid", "invalid")
    assert open_labels(disputed) == 2
    project_settings.apply_change(team.project, team.lead, {"disputed_overlap": 3})
    assert (open_labels(disputed), to_decide()) == (1, set())


def test_no_later_change_of_settings_asks_again_for_what_was_decided(team: Team) -> None:
    Membership.objects.filter(pk=team.lead.pk).update(active=False)
    team.project.overlap = 3
    team.project.save()
    disputed, agreed = team.label("x", "valid", "invalid"), team.label("y", "valid", "valid")
    assignment.stop_waiting(team.lead, now=timezone.now())
    assert (to_decide(), open_labels(disputed), open_labels(agreed)) == ({"x"}, 0, 0)
    for values in ({"order": "random"}, {"disputed_overlap": 4}, {"disputed_overlap": 0}):
        project_settings.apply_change(team.project, team.lead, values)
        assert to_decide() == {"x"}, values
    assert list(find_wrong_slot_counts()) == []
    project_settings.apply_change(team.project, team.lead, {"overlap": 4})
    assert (open_labels(disputed), open_labels(agreed)) == (1, 1)


def test_a_hold_that_is_over_does_not_hide_what_waits(team: Team) -> None:
    disputed = team.label("disputed", "valid", "invalid")
    third = make_member(team.project)
    take(third)
    assert not assignment.stuck_items(team.project).exists()
    Slot.objects.filter(member=third).update(held_until=timezone.now() - timedelta(minutes=1))
    assert set(assignment.stuck_items(team.project)) == {disputed}
    assert team.post() == 302
    assert to_decide() == {"disputed"}
    assert not Slot.objects.filter(state="held").exists()
