"""Versions of a project that stay as they are."""

import io
import threading
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from annotation.errors import FieldError
from annotation.exporting import tables
from annotation.items.snapshots import comparison, create, facts, table
from annotation.jobs import job_queue
from annotation.jobs.subprocesses import ProgramResult
from annotation.labelling import comments
from annotation.models import Event, Frozen, FrozenIn, Item, Job, Project, Snapshot
from tests.builders import (
    Cast,
    cast,
    correct,
    make_item,
    make_project,
    make_resolution,
    make_revision,
    say,
    take,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Cast:
    people = cast()
    for key in ("a", "b", "c"):
        make_item(people.project, key, fields={"language": "en", "n": 0.1})
    return people


def freeze(people: Cast, name: str) -> Snapshot:
    snapshot = create.enqueue(people.project, people.lead, name)
    create.store_contents(snapshot)
    snapshot.refresh_from_db()
    return snapshot


def between(before: Snapshot, after: Snapshot) -> dict[str, set[str]]:
    """Keys by what became of the items; the numbers of a kind are those of its items."""
    sets = {kind: set(keys(before, after, kind)) for kind in comparison.CHANGE_TITLES}
    assert comparison.count_changes(before, after) == {
        kind: len(found) for kind, found in sets.items()
    }
    return sets


def keys(before: Snapshot, after: Snapshot, kind: str) -> list[str]:
    return list(comparison.filter_changed(before, after, kind).values_list("item__key", flat=True))


def test_nothing_changed_is_the_same_digest_and_shares_all_states(people: Cast) -> None:
    first, second = freeze(people, "v1"), freeze(people, "v2")
    assert first.digest == second.digest
    assert (first.items, Frozen.objects.count(), FrozenIn.objects.count()) == (3, 3, 6)
    assert not any(between(first, second).values())


def test_what_was_done_between_two_is_told_by_item(people: Cast) -> None:
    first = freeze(people, "v1")
    offer = take(people.annotator)
    say(people.annotator, correct(people.annotator, offer))
    say(people.annotator, take(people.annotator))
    Item.objects.filter(key="c").update(deleted_at=timezone.now())
    make_item(people.project, "d")
    second = freeze(people, "v2")
    assert first.digest != second.digest
    assert between(first, second) == {
        "added": {"d"},
        "removed": {"c"},
        "changed": {"a", "b"},
        "texts": {"a"},
        "held": {"a", "b"},
    }


def test_an_item_is_compared_fact_by_fact(people: Cast) -> None:
    Item.objects.filter(key="a").update(flags=["odd"])
    first = freeze(people, "v1")
    item = Item.objects.get(key="a")
    item.category, item.fields = "spelling", {"language": "de", "n": 0.1, "new": [1]}
    item.save()
    make_resolution(item, "invalid")
    make_revision(item, {"prompt": "?", "gold": "x", "perturbed": "y"})
    found = comparison.filter_changed(first, freeze(people, "v2"), "changed")
    [change] = comparison.list_changes(found, "changed")
    said = [(one.name, one.old, one.new) for one in change.facts]
    assert said == [
        ("category", "number-errors", "spelling"),
        ("language", "en", "de"),
        ("new", None, [1]),
        ("revision", 1, 2),
        ("resolution", None, "invalid"),
        ("source of the resolution", None, "imported"),
        ("rule of the resolution", None, "accepted at import"),
    ]


def test_a_label_alone_is_a_change(people: Cast) -> None:
    Project.objects.filter(pk=people.project.pk).update(overlap=2)
    make_resolution(Item.objects.get(key="a"))
    first = freeze(people, "v1")
    label = say(people.annotator, take(people.annotator))
    changed = between(first, freeze(people, "v2"))
    assert label.item.key in changed["changed"]
    assert changed["texts"] == set()


def test_comments_are_no_part_of_it(people: Cast) -> None:
    first = freeze(people, "v1")
    item = Item.objects.get(key="a")
    comments.add_comment(people.lead, item, "Look.", now=timezone.now())
    assert freeze(people, "v2").digest == first.digest


def test_other_installations_have_the_same_digest(people: Cast) -> None:
    """Ids of rows, the order of keys in objects and the project's name do not matter."""
    other = make_project("elsewhere")
    make_item(make_project("more"), "between")
    for key in ("a", "b", "c"):
        make_item(other, key, fields={"n": 0.1, "language": "en"})
    mirrored = create.enqueue(other, None, "v1")
    create.store_contents(mirrored)
    mirrored.refresh_from_db()
    assert mirrored.digest == freeze(people, "v1").digest


def test_the_order_of_items_is_part_of_it(people: Cast) -> None:
    first = freeze(people, "v1")
    Item.objects.filter(key="a").update(position=99)
    assert freeze(people, "v2").digest != first.digest


@pytest.mark.parametrize(
    "change",
    [
        lambda one: Snapshot.objects.filter(pk=one.pk).update(name="other"),
        lambda one: Snapshot.objects.filter(pk=one.pk).update(made_at=None),
        lambda one: Frozen.objects.update(value="invalid"),
        lambda one: FrozenIn.objects.all()._raw_delete("default"),
        lambda one: Frozen.objects.all()._raw_delete("default"),
        lambda one: FrozenIn.objects.update(snapshot=one),
    ],
)
def test_what_is_made_cannot_be_changed(people: Cast, change: object) -> None:
    snapshot = freeze(people, "v1")
    assert callable(change)
    with pytest.raises(DatabaseError, match="stays as it is"), transaction.atomic():
        change(snapshot)


def test_nothing_comes_in_once_it_is_made(people: Cast) -> None:
    snapshot = freeze(people, "v1")
    item = make_item(people.project, "late")
    state = Frozen.objects.create(item=item, revision=item.revision(), facts={}, digest="x")
    with pytest.raises(DatabaseError, match="stays as it is"), transaction.atomic():
        FrozenIn.objects.create(snapshot=snapshot, item=item, frozen=state)


def test_names_are_taken_once(people: Cast) -> None:
    freeze(people, "v1")
    with pytest.raises(FieldError, match="has this name"):
        create.enqueue(people.project, people.lead, "v1")


def test_it_is_on_record(people: Cast) -> None:
    snapshot = freeze(people, "v1")
    event = Event.objects.get(kind="snapshot")
    assert (event.subject, event.member) == ("v1", people.lead)
    assert event.data["digest"] == snapshot.digest


def test_what_changes_while_it_is_stored_stays_out(
    people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is read at one moment: here the second item changes once the first is stored."""
    monkeypatch.setattr(create, "BATCH_SIZE", 1)
    snapshot = create.enqueue(people.project, people.lead, "v1")

    def interfere(done: int) -> None:
        if done == 1:
            item = Item.objects.get(key="b")
            make_revision(item, {"prompt": "?", "gold": "x", "perturbed": "y"})

    create.store_contents(snapshot, interfere)
    held = FrozenIn.objects.of_snapshot(snapshot).values_list("frozen__facts", flat=True)
    assert {one["revision"] for one in held} == {1}


def test_a_broken_attempt_begins_anew(people: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(create, "BATCH_SIZE", 1)
    snapshot = create.enqueue(people.project, people.lead, "v1")

    def stop(done: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create.store_contents(snapshot, stop)
    assert FrozenIn.objects.count() == 2
    create.store_contents(snapshot)
    snapshot.refresh_from_db()
    assert (snapshot.items, FrozenIn.objects.count()) == (3, 3)


def test_one_that_was_given_up_is_taken_away_with_its_name(people: Cast) -> None:
    snapshot = create.enqueue(people.project, people.lead, "v1")
    assert create.due_job_ids(timezone.now()) == [snapshot.job_id]
    assert create.cancel_snapshot(snapshot, people.lead)
    assert create.due_job_ids(timezone.now()) == [snapshot.job_id]
    assert not create.run_job(snapshot.job_id)
    assert create.due_job_ids(timezone.now()) == []
    assert not Snapshot.objects.exists()
    assert Job.objects.get(pk=snapshot.job_id).message == "Cancelled by lead."
    freeze(people, "v1")


def test_states_are_read_in_a_fixed_number_of_queries(
    people: Cast, django_assert_num_queries: object
) -> None:
    make_resolution(Item.objects.get(key="a"))
    assert callable(django_assert_num_queries)
    with django_assert_num_queries(5):
        found = list(facts.read_states(people.project))
    assert [one.facts["key"] for one in found] == ["a", "b", "c"]
    assert found[0].value == "valid"


def test_a_worker_makes_what_was_asked_for_and_notes_it(
    people: Cast, in_this_program: None
) -> None:
    snapshot = create.enqueue(people.project, people.lead, "v1")
    assert create.run_job(snapshot.job_id)
    assert not create.run_job(snapshot.job_id)
    snapshot.refresh_from_db()
    assert snapshot.items == 3
    job = Job.objects.get()
    assert (job.state, job.done) == (Job.State.FINISHED, 3)
    assert create.due_job_ids(timezone.now()) == []


def test_the_command_makes_one_and_tells_its_digest(people: Cast, in_this_program: None) -> None:
    said = io.StringIO()
    call_command("snapshot", project=people.project.slug, name="v1", stdout=said)
    digest = Snapshot.objects.get().digest
    assert said.getvalue() == f"v1: 3 items, digest {digest}\n"
    for name, why in (("v1", "has this name"), (" ", "1 to 80"), ("x" * 81, "1 to 80")):
        with pytest.raises(CommandError, match=why):
            call_command("snapshot", project=people.project.slug, name=name)
    with pytest.raises(CommandError, match="at most 2,000 characters"):
        call_command("snapshot", project=people.project.slug, name="v2", note="n" * 2_001)
    for given, lacking in (
        ("--name=v2", "--project"),
        (f"--project={people.project.slug}", "--name"),
    ):
        with pytest.raises(CommandError, match=f"arguments are required: {lacking}$"):
            call_command("snapshot", given)


def test_a_program_that_fails_leaves_its_reason_and_no_snapshot(
    people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_queue, "run_leased", lambda *_: ProgramResult(1, "No space is left."))
    snapshot = create.enqueue(people.project, people.lead, "v1")
    assert not create.run_job(snapshot.job_id)
    assert Job.objects.get().message == "No space is left."
    assert not Snapshot.objects.exists()


def test_a_snapshot_has_the_table_of_items_as_it_was(people: Cast) -> None:
    """In the same columns and words as the table of now."""
    hostile = {"prompt": "<b>\u202e=1+1", "gold": "x\ny", "perturbed": "z", "claim": "\u00e9"}
    make_revision(Item.objects.get(key="b"), hostile)
    make_resolution(Item.objects.get(key="a"))
    now = list(tables.item_rows(people.project))
    snapshot = freeze(people, "v1")
    assert list(table.item_rows(snapshot)) == now
    make_resolution(Item.objects.get(key="b"), "invalid")
    Item.objects.filter(key="c").update(deleted_at=timezone.now(), category="spelling")
    assert list(tables.item_rows(people.project)) != now
    assert list(table.item_rows(snapshot)) == now


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_snapshots_at_the_same_moment_store_each_state_once(
    people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, first = create._known_state_ids, create.enqueue(people.project, people.lead, "one")
    second = create.enqueue(people.project, people.lead, "two")

    def store_second() -> None:
        create.store_contents(second)
        connection.close()

    other = threading.Thread(target=store_second)

    def load_as_other_stores(*given: Any) -> Any:
        found = load(*given)
        if other.ident is None:
            other.start()
            other.join(0.5)  # It waits for the first; without a lock it is done by now.
        return found

    monkeypatch.setattr(create, "_known_state_ids", load_as_other_stores)
    create.store_contents(first)
    other.join()
    assert [*Snapshot.objects.order_by("pk").values_list("items", flat=True)] == [3, 3]
    assert (Frozen.objects.count(), FrozenIn.objects.count()) == (3, 6)
