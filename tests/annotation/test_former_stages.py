"""Stages were called work, practice and probe: what was stored then is changed, and still read."""

from importlib import import_module

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from annotation.items.snapshots import facts
from annotation.labelling.models.slots import Cursor
from annotation.models import Event, Item, Label, Slot, Stage
from annotation.projects import audit
from tests.builders import cast, make_item, make_member, make_project, make_slot, say, take

FORMER = ["blind", "practice", "probe", "verify", "work"]
NOW = ["blind", "control", "label", "qualification", "verify"]


def migrate(*, backwards: bool = False) -> None:
    name = "0015_stages"
    made = import_module(f"annotation.migrations.{name}").Migration(name, "annotation")
    state = MigrationExecutor(connection).loader.project_state(
        ("annotation", made.dependencies[0][1])
    )
    with connection.schema_editor() as editor:
        (made.unapply if backwards else made.apply)(state, editor)


def stages() -> list[list[str]]:
    return [
        sorted(model.objects.values_list("stage", flat=True)) for model in (Slot, Cursor, Label)
    ]


@pytest.mark.django_db(transaction=True)
def test_the_update_changes_the_stage_of_slots_labels_and_cursors_and_back() -> None:
    project = make_project()
    item, member = make_item(project, slots=0), make_member(project)
    for stage in FORMER:
        slot = make_slot(item, stage=stage, state="filled", member=member)
        Cursor.objects.create(member=member, stage=stage)
        Label.objects.create(
            project=project,
            item=item,
            revision=item.revision(),
            slot=slot,
            stage=stage,
            member=member,
            choice="valid",
            submission=stage,
            task_type=project.task_type,
        )
    migrate()
    assert stages() == [NOW, NOW, NOW]
    assert Label.objects.get(submission="probe").slot == Slot.objects.get(stage=Stage.CONTROL)
    migrate(backwards=True)
    assert stages() == [FORMER, FORMER, FORMER]


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
