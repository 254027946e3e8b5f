"""Stages were called work, practice and probe: what was written then is still read."""

import pytest
from django.utils import timezone

from annotation.items.snapshots import facts
from annotation.models import Event, Item
from annotation.projects import audit
from tests.builders import cast, make_item, say, take


@pytest.mark.django_db
def test_an_entry_of_the_audit_stays_and_is_told_in_the_words_of_today() -> None:
    new = {"choice": "valid", "revision": 1, "stage": "probe"}
    event = Event(kind="label", subject="a", data={"new": new})
    told = {change.name: change.new for change in audit.describe_changes(event)}
    assert told == {"choice": "valid", "revision": "1", "stage": "control"}
    assert event.new["stage"] == "probe"


@pytest.mark.django_db
def test_a_snapshot_has_the_digest_that_it_had_before_stages_had_their_words() -> None:
    people = cast()
    item = make_item(people.project)
    label = say(people.annotator, take(people.annotator), comment="Six.", now=timezone.now())
    [state] = facts.read_states(people.project)
    said = ["work", people.annotator.alias, 1, label.answers, "Six.", True]
    then = {"said": said, "time": label.created_at.isoformat()}
    assert (state.item, state.facts["labels"]) == (item.pk, [facts.digest_facts(then)])
    assert Item.objects.get().labels.get().stage == "label"
