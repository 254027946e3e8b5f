"""Changes of many items at once, and undoing them."""

from collections import Counter
from contextlib import suppress
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation.errors import Refused
from annotation.items import taxonomy
from annotation.labelling import bulk_changes, queue
from annotation.labelling.correct_answers import PROBE
from annotation.labelling.queue import Offer
from annotation.models import BulkChange, Event, Item, Membership, Project, Resolution, Slot
from annotation.settings import categories, project_settings
from operation.integrity.labelling import find_wrong_slot_counts
from tests.annotation.test_agreement import make_label
from tests.builders import (
    browser_of,
    make_item,
    make_known,
    make_member,
    make_project,
    make_resolution,
    say,
    take,
)

pytestmark = pytest.mark.django_db

KEYS = [f"item-{number}" for number in range(6)]


@pytest.fixture
def lead() -> Membership:
    project = make_project()
    for key in KEYS:
        make_item(project, key=key)
    return make_member(project, role="lead")


def change(lead: Membership, action: str, value: str = "", keys: list[str] = KEYS) -> Any:
    items = Item.objects.in_project(lead.project).with_keys(keys)
    return bulk_changes.change_items(lead, items, action, value, now=timezone.now())


def undo(lead: Membership, made: BulkChange, later: timedelta = timedelta(0)) -> int:
    return bulk_changes.undo_change(lead, made, now=timezone.now() + later)


def offered(member: Membership) -> str:
    offer = queue.next_offer(member, now=timezone.now())
    return offer.item.key if isinstance(offer, Offer) else ""


def test_items_move_to_another_category_and_back(lead: Membership) -> None:
    to = taxonomy.load_taxonomy(lead.project).offered[-1]
    before = list(Item.objects.values_list("category", "ability", "source_ability"))
    made = change(lead, "category", to.slug)
    assert made.change.count == 6
    assert set(Item.objects.values_list("category", "ability")) == {(to.slug, to.ability)}
    assert change(lead, "category", to.slug).left == {"already in this category": 6}
    assert undo(lead, made.change) == 6
    assert list(Item.objects.values_list("category", "ability", "source_ability")) == before


def test_items_come_back_into_their_category_as_it_is_today(lead: Membership) -> None:
    project, old = lead.project, Item.objects.get(key=KEYS[0])
    made = change(lead, "category", taxonomy.load_taxonomy(project).offered[-1].slug)
    definition = deepcopy(project.taxonomy.definition)
    [entry] = [one for one in definition["category"] if one["slug"] == old.category]
    other = next(one["slug"] for one in definition["ability"] if one["slug"] != old.ability)
    entry["ability"] = other
    save_categories(lead, definition)
    assert undo(lead, made.change) == 6
    back = Item.objects.get(key=KEYS[0])
    assert (back.category, back.ability, back.source_ability) == (old.category, other, other)


def test_items_come_back_from_a_category_that_is_of_another_ability_now(lead: Membership) -> None:
    before = list(Item.objects.values_list("category", "ability", "source_ability"))
    category = taxonomy.load_taxonomy(lead.project).offered[-1].slug
    made = change(lead, "category", category)
    definition = deepcopy(lead.project.taxonomy.definition)
    [entry] = [one for one in definition["category"] if one["slug"] == category]
    entry["ability"] = next(
        one["slug"] for one in definition["ability"] if one["slug"] != entry["ability"]
    )
    save_categories(lead, definition)
    assert undo(lead, made.change) == 6
    assert list(Item.objects.values_list("category", "ability", "source_ability")) == before


def test_items_whose_category_was_merged_meanwhile_stay_in_the_new_one(lead: Membership) -> None:
    project, old = lead.project, Item.objects.get(key=KEYS[0])
    first, second = taxonomy.load_taxonomy(project).offered[-2:]
    made = change(lead, "category", second.slug)
    definition = deepcopy(project.taxonomy.definition)
    [entry] = [one for one in definition["category"] if one["slug"] == old.category]
    entry |= {"retired": True, "merged_into": first.slug}
    save_categories(lead, definition)
    assert undo(lead, made.change) == 0
    assert set(Item.objects.values_list("category", flat=True)) == {second.slug}


def save_categories(lead: Membership, definition: dict[str, Any]) -> None:
    shown = lead.project.taxonomy_id
    categories.save(lead.project, definition, member=lead, shown=shown, note="changed")


def test_what_was_changed_again_stays_when_the_first_change_is_undone(lead: Membership) -> None:
    first, second = taxonomy.load_taxonomy(lead.project).offered[-2:]
    made = change(lead, "category", first.slug)
    change(lead, "category", second.slug, KEYS[:2])
    assert undo(lead, made.change) == 4
    assert Item.objects.filter(category=second.slug).count() == 2
    with pytest.raises(Refused, match="already undone"):
        undo(lead, made.change)


def test_excluded_items_are_offered_to_nobody_until_they_are_back(lead: Membership) -> None:
    ann = make_member(lead.project, alias="Ann")
    made = change(lead, "exclude", keys=KEYS[:5])
    assert list(Item.objects.in_project(lead.project).values_list("key", flat=True)) == ["item-5"]
    assert offered(ann) == "item-5"
    again = change(lead, "exclude", keys=["item-5"])
    assert undo(lead, made.change) == 5
    assert Item.objects.in_project(lead.project).count() == 5
    assert undo(lead, again.change) == 1


def test_items_that_are_back_have_as_many_places_as_the_settings_say_by_then(
    lead: Membership,
) -> None:
    made = change(lead, "exclude").change
    assert made.project.overlap == 1
    stored = Project.objects.get(pk=lead.project_id)
    project_settings.apply_change(stored, lead, {"overlap": 3})
    assert set(Counter(Slot.objects.values_list("item", flat=True)).values()) == {1}
    assert undo(lead, made) == 6
    assert set(Counter(Slot.objects.values_list("item", flat=True)).values()) == {3}
    assert list(find_wrong_slot_counts()) == []


def test_urgent_items_come_first_and_then_in_their_order_again(lead: Membership) -> None:
    made = change(lead, "priority", "urgent", ["item-4"])
    assert offered(make_member(lead.project, alias="Ann")) == "item-4"
    assert undo(lead, made.change) == 1
    assert set(Slot.objects.values_list("priority", flat=True)) == {0}
    assert not Slot.objects.filter(returned=True).exists()


def test_reserved_items_are_free_again(lead: Membership) -> None:
    ann, bob = (make_member(lead.project, alias=alias) for alias in ("Ann", "Bob"))
    made = change(lead, "reserve", str(ann.pk))
    assert made.change.count == 6
    assert offered(bob) == ""
    say(ann, take(ann))
    assert undo(lead, made.change) == 5
    assert offered(bob) != ""


def test_final_labels_become_the_answers_of_control_items(lead: Membership) -> None:
    make_resolution(Item.objects.get(key="item-0"), "score-invariant")
    made = change(lead, "control")
    assert made.change.count == 1
    assert made.left == {"have no final label, which would be the known answer": 5}
    item = Item.objects.get(key="item-0")
    assert item.purpose == PROBE
    assert Resolution.objects.current().get(item=item).source == "known"
    assert undo(lead, made.change) == 1
    item.refresh_from_db()
    assert item.purpose == "test"


@pytest.mark.parametrize(
    ("action", "value", "keys", "why"),
    [
        ("", "", KEYS, "Choose what to change"),
        ("delete", "", KEYS, "Choose what to change"),
        ("category", "", KEYS, "Category: choose one"),
        ("category", "no-such", KEYS, "Category: choose one"),
        ("reserve", "77", KEYS, "Reserve for: choose one"),
        ("exclude", "x", KEYS, "choose one"),
        ("exclude", "", [], "No items are chosen"),
    ],
)
def test_what_cannot_be_changed_is_said(
    lead: Membership, action: str, value: str, keys: list[str], why: str
) -> None:
    with pytest.raises(Refused, match=why):
        change(lead, action, value, keys)
    assert not BulkChange.objects.exists()


def test_too_many_items_at_once_are_refused(lead: Membership, monkeypatch: Any) -> None:
    few = bulk_changes.Action(**{**vars(bulk_changes.ACTIONS["exclude"]), "most": 5})
    monkeypatch.setitem(bulk_changes.ACTIONS, "exclude", few)
    with pytest.raises(Refused, match="at most 5 items at once"):
        change(lead, "exclude")


def test_a_change_that_breaks_off_can_be_undone_as_far_as_it_came(
    lead: Membership, monkeypatch: Any
) -> None:
    monkeypatch.setattr(bulk_changes, "BATCH", 2)
    apply = bulk_changes.ACTIONS["exclude"].apply

    def break_off(step: bulk_changes.Step) -> Any:
        if step.items[0].key == "item-2":
            apply(step)
            raise RuntimeError
        return apply(step)

    broken = bulk_changes.Action(**{**vars(bulk_changes.ACTIONS["exclude"]), "apply": break_off})
    monkeypatch.setitem(bulk_changes.ACTIONS, "exclude", broken)
    with pytest.raises(RuntimeError):
        change(lead, "exclude")
    assert Item.objects.in_project(lead.project).count() == 4
    made = BulkChange.objects.get()
    with pytest.raises(Refused, match="still under way"):
        undo(lead, made)
    assert undo(lead, made, later=bulk_changes.BROKEN_AFTER) == 2
    assert Item.objects.in_project(lead.project).count() == 6


def test_an_undo_that_breaks_off_can_be_done_again(lead: Membership, monkeypatch: Any) -> None:
    monkeypatch.setattr(bulk_changes, "BATCH", 2)
    made = change(lead, "exclude").change
    usual = bulk_changes.ACTIONS["exclude"]

    def break_off(step: bulk_changes.Step) -> int:
        if step.items[0].key == "item-2":
            raise RuntimeError
        return usual.undo(step)

    broken = bulk_changes.Action(**{**vars(usual), "undo": break_off})
    monkeypatch.setitem(bulk_changes.ACTIONS, "exclude", broken)
    with pytest.raises(RuntimeError):
        undo(lead, made)
    assert Item.objects.in_project(lead.project).count() == 2
    monkeypatch.setitem(bulk_changes.ACTIONS, "exclude", usual)
    assert undo(lead, made) == 4
    assert Item.objects.in_project(lead.project).count() == 6


@pytest.mark.parametrize("rule", ["verified", "excluded"])
def test_a_verified_or_excluded_item_is_again_what_it_was(lead: Membership, rule: str) -> None:
    item = Item.objects.get(key="item-0")
    ann = make_member(lead.project, alias="Ann")
    change(lead, "reserve", str(ann.pk), ["item-0"])
    say(ann, take(ann))
    Resolution.objects.filter(item=item).update(rule=rule)
    made = change(lead, "control", keys=["item-0"])
    assert made.change.count == 1
    assert undo(lead, made.change) == 1
    again = Resolution.objects.current().get(item=item)
    assert (again.value, again.rule, again.source) == ("valid", rule, "labels")


def test_a_reserved_item_in_work_is_free_once_its_time_is_over(lead: Membership) -> None:
    ann, bob = (make_member(lead.project, alias=alias) for alias in ("Ann", "Bob"))
    made = change(lead, "reserve", str(ann.pk), ["item-0"])
    opened = take(ann)
    assert opened.item.key == "item-0"
    undo(lead, made.change)
    assert not Slot.objects.filter(reserved_for__isnull=False).exists()
    later = timezone.now() + timedelta(hours=2)
    assert take(bob, now=later).item.key == "item-0"


def test_control_items_stay_as_they_are_and_that_is_said(lead: Membership) -> None:
    known = make_known(lead.project, "known", purpose=PROBE)
    with pytest.raises(Refused, match="Qualification and control items stay"):
        change(lead, "exclude", keys=[known.key])
    assert change(lead, "exclude", keys=[known.key, "item-0"]).left == {
        "qualification and control items": 1
    }


def test_a_change_for_somebody_who_left_still_says_for_whom(lead: Membership) -> None:
    ann = make_member(lead.project, alias="Ann")
    made = change(lead, "reserve", str(ann.pk)).change
    Membership.objects.filter(pk=ann.pk).update(active=False)
    assert bulk_changes.describe(lead.project, [made]) == [(made, "reserved for Ann")]


def test_changes_are_on_record(lead: Membership) -> None:
    ann = make_member(lead.project, alias="Ann")
    undo(lead, change(lead, "reserve", str(ann.pk), keys=["item-1", "item-3"]).change)
    said = {"items": 2, "change": "reserved for Ann", "keys": ["item-1", "item-3"]}
    for kind in ("bulk change", "bulk change undone"):
        assert Event.objects.get(kind=kind).data.items() >= said.items()
    page = browser_of(lead).get(f"/projects/{lead.project.slug}/bulk-changes/").text
    assert f'/projects/{lead.project.slug}/items/item-3/">item-3</a>' in page
    audit = browser_of(lead).get(f"/projects/{lead.project.slug}/audit/").text
    assert "reserved for Ann" in audit
    assert "item-1" in audit


def test_the_page_names_excluded_items_too_and_not_those_of_a_large_change(
    lead: Membership,
) -> None:
    change(lead, "exclude", keys=["item-2"])
    page = f"/projects/{lead.project.slug}/bulk-changes/"
    assert ">item-2</a>" in browser_of(lead).get(page).text
    client = browser_of(lead)

    def count() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert client.get(page).status_code == 200
        return len(seen)

    before = count()
    change(lead, "reserve", keys=["item-3", "item-4"], value=str(make_member(lead.project).pk))
    assert count() == before
    BulkChange.objects.update(count=11)
    assert ">item-2</a>" not in browser_of(lead).get(page).text


def state(project: Project) -> Any:
    """All that a change can touch; slots that were closed again are as if they were not there."""
    items = Item.objects.filter(project=project).order_by("pk")
    slots = Slot.objects.filter(project=project).exclude(state="closed").order_by("item", "number")
    held = Resolution.objects.current().filter(item__project=project).order_by("item")
    return (
        list(items.values_list("key", "category", "ability", "source_ability", "deleted_at")),
        list(items.values_list("key", "purpose")),
        list(slots.values_list("item", "stage", "state", "priority", "reserved_for")),
        list(held.values_list("item", "value", "source")),
    )


CHANGES = st.tuples(
    st.sampled_from([*bulk_changes.ACTIONS]),
    st.integers(0, 9),
    st.lists(st.sampled_from(KEYS), min_size=1, unique=True),
)


@settings(
    # Each example makes up to six changes, so a third of the examples is enough.
    max_examples=max(15, settings().max_examples // 3),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(st.lists(CHANGES, min_size=1, max_size=6))
def test_undoing_changes_in_reverse_restores_everything(asked: list[Any]) -> None:
    """Half a minute with the many examples of CI: each makes a project and changes it."""
    project = make_project()
    for key in KEYS:
        make_item(project, key=key)
    lead, _ = make_member(project, role="lead"), make_member(project, alias="Ann")
    accepted = Item.objects.get(project=project, key="item-1")
    accepted.slots.all().delete()  # as after an import that accepts it
    make_resolution(accepted, "score-invariant")
    before, made = state(project), []
    for action, pick, keys in asked:
        values = [*bulk_changes.list_actions(project)[action][1]]
        value = values[pick % len(values)] if values else ""
        # Excluded items and control items are chosen no more.
        with suppress(Refused):
            made.append(change(lead, action, value, keys).change)
    for one in reversed(made):
        back = undo(lead, one)
        # A reservation ends when its item becomes a control item.
        assert back <= one.count if one.action == "reserve" else back == one.count
    assert state(project) == before


def post(client: Client, project: Project, query: str = "", **said: Any) -> Any:
    return client.post(f"/projects/{project.slug}/bulk-changes/{query}", said, follow=True)


def test_a_lead_changes_ticked_items_on_the_page_and_undoes_it(lead: Membership) -> None:
    client = browser_of(lead)
    chosen = [Item.objects.get(key=key).pk for key in KEYS[:2]]
    page = post(client, lead.project, scope="ticked", item=chosen, action="exclude:")
    assert "2 items excluded." in page.content.decode()
    assert f"/projects/{lead.project.slug}/bulk-changes/1/undo/" in page.content.decode()
    page = client.post(f"/projects/{lead.project.slug}/bulk-changes/1/undo/", follow=True)
    assert "Undone: 2 items as before." in page.content.decode()
    assert Item.objects.in_project(lead.project).count() == 6


def test_all_that_match_are_those_of_the_filters(lead: Membership) -> None:
    client = browser_of(lead)
    post(client, lead.project, "?search=item-3", scope="all", action="priority:later")
    assert BulkChange.objects.get().count == 1
    page = post(client, lead.project, "?category=none-such", scope="all", action="exclude:")
    assert "Correct the filters first" in page.content.decode()
    other = make_item(make_project(slug="other"), key="other")
    post(client, lead.project, scope="ticked", item=[other.pk, "x", "9" * 30], action="exclude:")
    assert not BulkChange.objects.filter(action="exclude").exists()


def test_the_filter_for_final_labels_is_called_as_their_column() -> None:
    project = make_project()
    make_item(project, "a")
    page = (
        browser_of(make_member(project, role="lead")).get(f"/projects/{project.slug}/items/").text
    )
    assert "Resolution" not in page
    assert page.count("Final label") == 2
    assert '<option value="none">None yet</option>' in page


def test_items_with_other_errors_are_excluded_as_study_001_did() -> None:
    project = make_project(task_type="error-detection")
    lead, ann = make_member(project, role="lead"), make_member(project)
    said = {"verdict": "error", "explanation": "It is wrong."}
    for key, more in [("a", {"other_type": "Bad grammar."}), ("b", {"other_type": ""}), ("c", {})]:
        make_label(make_item(project, key), ann, {**said, **more})
    client, page = browser_of(lead), f"/projects/{project.slug}/items/"
    assert "Another error category</option>" in client.get(page).content.decode()
    listed = client.get(f"{page}?wrote=other_type").content.decode()
    assert "1 item" in listed
    post(client, project, "?wrote=other_type", scope="all", action="exclude:")
    assert set(Item.objects.in_project(project).values_list("key", flat=True)) == {"b", "c"}
    other = f"/projects/{make_project('vetting').slug}/items/"
    make_member(Project.objects.get(slug="vetting"), role="lead", account=lead.account)
    assert 'name="wrote"' not in client.get(other).content.decode()
