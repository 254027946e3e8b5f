"""The settings of a project: what leads change, what it does, what is on record."""

import re
from collections import Counter
from copy import copy
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import importing
from annotation.db import clock
from annotation.jobs import job_queue
from annotation.labelling import answer_key, assignment
from annotation.models import Event, Item, Job, Label, Membership, Project, Slot
from annotation.settings import project_settings
from annotation.settings.views.project_settings import SettingsForm, _describe_value
from tests.builders import (
    browser_of,
    make_item,
    make_known,
    make_member,
    make_project,
    make_resolution,
    resize_all,
    say,
    take,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead() -> Membership:
    return make_member(make_project(), role="lead")


def sent(lead: Membership, **values: Any) -> dict[str, Any]:
    """All that the page would send, with some values changed; names with a dot as they are."""
    form = SettingsForm(lead.project)
    shown = {name: form[name].value() for name in form.fields}
    shown |= {name.replace("__", "."): value for name, value in values.items()}
    kept = {
        name: value for name, value in shown.items() if value is not None and value is not False
    }
    return kept | {"seen": str(project_settings.list_changes(lead.project).count())}


def post(lead: Membership, data: dict[str, Any]) -> tuple[int, str]:
    client = Client()
    client.force_login(lead.account)  # type: ignore[arg-type]
    answer = client.post(reverse("settings", args=[lead.project.slug]), data)
    lead.project.refresh_from_db()
    return answer.status_code, answer.content.decode()


def test_every_switch_of_a_project_is_on_the_page_with_a_sentence(lead: Membership) -> None:
    form = SettingsForm(lead.project)
    assert set(project_settings.SETTING_NAMES) - {"rules"} <= set(form.fields)
    on_page = [field.name for _, bound in form.groups() for field in bound]
    assert sorted(on_page) == sorted(form.fields)
    explained = [name for name, field in form.fields.items() if field.help_text]
    assert set(form.fields) - set(explained) == {"name", "description"}


def test_nothing_changes_when_the_page_is_sent_as_it_is(lead: Membership) -> None:
    assert post(lead, sent(lead))[0] == 302
    assert not Event.objects.filter(kind="settings").exists()


def test_a_change_is_stored_and_on_record_with_old_and_new(lead: Membership) -> None:
    assert post(lead, sent(lead, verify="on", hold_minutes=5, rule__choice="unanimous"))[0] == 302
    project = lead.project
    assert (project.verify, project.hold_minutes) == (True, 5)
    assert project.rules == {"choice": "unanimous"}
    event = Event.objects.get(kind="settings")
    assert event.data["old"] == {"verify": False, "hold_minutes": 30, "rules": {}}
    assert event.data["new"]["hold_minutes"] == 5
    assert event.member == lead


def test_more_overlap_gives_items_places_and_less_takes_no_label_away(lead: Membership) -> None:
    make_item(lead.project)
    say(lead, take(lead))
    post(lead, sent(lead, overlap=3))
    assert Slot.objects.exclude(state="closed").count() == 3
    assert Job.objects.get(kind="places").state == "finished"
    post(lead, sent(lead, overlap=1))
    assert Slot.objects.exclude(state="closed").count() == 1
    assert Label.objects.counted().count() == 1


def test_items_with_known_answers_get_no_place_by_more_overlap(lead: Membership) -> None:
    item = make_item(lead.project)
    answer_key.set_answer(lead.project, item, "probe", {"choice": "valid"}, "", lead)
    make_known(lead.project, purpose="probe")
    post(lead, sent(lead, overlap=3))
    assert not Slot.objects.exclude(state="closed").exists()


def test_a_large_project_is_brought_in_line_by_a_worker(
    lead: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_settings, "MAX_IMMEDIATE_ITEMS", 0)
    make_item(lead.project)
    applied = project_settings.apply_change(lead.project, lead, {"overlap": 2})
    assert applied.job
    assert project_settings.unfinished_job(lead.project) == applied.job
    assert Slot.objects.count() == 1
    assert job_queue.due_job_ids(project_settings.RESIZE_JOB, timezone.now()) == [applied.job.pk]
    assert project_settings.run_job(applied.job.pk)
    assert Slot.objects.count() == 2
    assert project_settings.unfinished_job(lead.project) is None
    assert job_queue.due_job_ids(project_settings.RESIZE_JOB, timezone.now()) == []


@pytest.fixture
def job(lead: Membership, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Three items that are to get a second place by a worker, item by item."""
    monkeypatch.setattr(project_settings, "MAX_IMMEDIATE_ITEMS", 0)
    monkeypatch.setattr(assignment, "BATCH", 1)
    for key in "abc":
        make_item(lead.project, key)
    made = project_settings.apply_change(lead.project, lead, {"overlap": 2}).job
    assert made
    return made


def places() -> dict[str, int]:
    return dict(Counter(Slot.objects.in_use().values_list("item__key", flat=True)))


def test_a_worker_that_must_stop_leaves_the_rest_to_the_next(job: Job) -> None:
    assert not project_settings.run_job(job.pk, stopped=lambda: True)
    assert places() == {"a": 2, "b": 1, "c": 1}
    assert not project_settings.run_job(job.pk, seconds=0)
    assert places() == {"a": 2, "b": 2, "c": 1}
    assert project_settings.run_job(job.pk)
    job.refresh_from_db()
    assert (job.done, job.state, places()) == (3, "finished", {"a": 2, "b": 2, "c": 2})


def test_one_worker_at_a_time_is_at_it_until_it_is_gone(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(project: Project, **asked: Any) -> Any:
        assert not project_settings.run_job(job.pk)
        assert job_queue.due_job_ids(project_settings.RESIZE_JOB, timezone.now()) == []
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(assignment, "resize_items", killed)
        with pytest.raises(KeyboardInterrupt):
            project_settings.run_job(job.pk)
    assert job_queue.due_job_ids(project_settings.RESIZE_JOB, timezone.now()) == []
    later = timezone.now() + job_queue.LEASE_TIME
    assert job_queue.due_job_ids(project_settings.RESIZE_JOB, later) == [job.pk]
    monkeypatch.setattr(clock, "now", lambda: later)
    assert project_settings.run_job(job.pk)


def test_settings_that_change_while_a_worker_is_at_it_are_not_lost(
    lead: Membership, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_line = assignment.resize_items

    def meanwhile(project: Project, **asked: Any) -> Any:
        yield from in_line(project, **asked)
        assert project_settings.apply_change(lead.project, lead, {"overlap": 3}).job == job

    with monkeypatch.context() as patched:
        patched.setattr(assignment, "resize_items", meanwhile)
        assert not project_settings.run_job(job.pk)
    assert job_queue.due_job_ids(project_settings.RESIZE_JOB, timezone.now()) == [job.pk]
    assert project_settings.run_job(job.pk)
    assert places() == {"a": 3, "b": 3, "c": 3}


def test_settings_that_change_between_two_workers_begin_with_the_first_item(
    lead: Membership, job: Job
) -> None:
    project_settings.run_job(job.pk, seconds=0)
    project_settings.apply_change(lead.project, lead, {"overlap": 3})
    assert project_settings.run_job(job.pk)
    assert places() == {"a": 3, "b": 3, "c": 3}


@pytest.mark.parametrize(
    "values, name",
    [
        ({"overlap": 0}, "overlap"),
        ({"share_percent": 101}, "share_percent"),
        ({"share_percent": 10, "share_overlap": 1}, "share_overlap"),
        ({"overlap": 2, "disputed_overlap": 2}, "disputed_overlap"),
        ({"practice_items": 1, "practice_pass": 2}, "practice_pass"),
        ({"practice_items": 5}, "practice_items"),
        ({"probe_every": 20}, "probe_every"),
        ({"rule__choice": "median"}, "rule.choice"),
        ({"text_format": "pdf"}, "text_format"),
        ({"name": " "}, "name"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name_and_nothing_changes(
    lead: Membership, values: dict[str, Any], name: str
) -> None:
    make_known(lead.project)
    status, page = post(lead, sent(lead, **values))
    assert status == 422
    assert f'id="id_{name}_error"' in page
    assert not Event.objects.filter(kind="settings").exists()


@pytest.mark.parametrize(
    "values, refused",
    [
        ({"share_percent": 100, "share_overlap": 2}, []),
        ({"share_percent": 101, "share_overlap": 2}, ["share_percent"]),
        ({"overlap": 2, "share_percent": 1, "share_overlap": 2}, ["share_overlap"]),
        ({"overlap": 2, "share_percent": 0, "share_overlap": 2}, []),
        ({"overlap": 1, "disputed_overlap": 1}, ["disputed_overlap"]),
        ({"overlap": 2, "disputed_overlap": 2}, ["disputed_overlap"]),
        ({"overlap": 2, "disputed_overlap": 3}, []),
        ({"overlap": 2, "disputed_overlap": 0}, []),
        # Those in the sample get more than the others, as long as there is a sample.
        ({"share_percent": 10, "share_overlap": 3, "disputed_overlap": 3}, ["disputed_overlap"]),
        ({"share_percent": 10, "share_overlap": 3, "disputed_overlap": 4}, []),
        ({"share_percent": 0, "share_overlap": 3, "disputed_overlap": 3}, []),
        ({"practice_items": 2, "practice_pass": 2}, []),
        ({"practice_items": 2, "practice_pass": 3}, ["practice_pass"]),
        ({"practice_items": 3, "practice_pass": 3}, ["practice_items"]),
        ({"practice_items": 0, "practice_pass": 3}, []),
        ({"probe_every": 1}, ["probe_every"]),
        ({"probe_every": 0}, []),
    ],
)
def test_settings_are_refused_just_past_their_limits(
    lead: Membership, values: dict[str, Any], refused: list[str]
) -> None:
    make_known(lead.project, "one")
    make_known(lead.project, "other")
    found = project_settings.find_problems(lead.project, values)
    assert [problem.name for problem in found] == refused


def test_practice_and_checks_are_switched_on_once_there_are_items(lead: Membership) -> None:
    make_known(lead.project)
    make_known(lead.project, purpose="probe")
    status, _ = post(lead, sent(lead, practice_items=1, practice_pass=1, probe_every=20))
    assert status == 302
    assert (lead.project.practice_items, lead.project.probe_every) == (1, 20)


def make_one_of_each(project: Project, lead: Membership) -> None:
    """Items in each state that decides whether a change of places touches them."""
    other = make_member(project)
    for key in ("open", "share-1", "share-2", "share-3", "share-4"):
        make_item(project, key)
    say(lead, take(lead))  # of "open"
    reserved = make_item(project, "kept", slots=2)
    reserved.slots.update(reserved_for=other)
    held = make_item(project, "held", slots=2)
    for slot, member in zip(held.slots.all(), (lead, other), strict=True):
        slot.hold(member.pk, timezone.now() + timedelta(hours=1))
    make_item(project, "two", slots=2)
    shut = make_item(project, "shut", slots=2)
    shut.slots.filter(number=2).update(state="closed")
    half = make_item(project, "half", slots=2)
    half.slots.filter(number=1).update(state="filled", member=lead)
    out = make_item(project, "out")
    out.slots.update(state="filled", member=lead)
    make_resolution(out, rule="excluded", source="labels")
    make_resolution(make_item(project, "accepted", slots=0))
    make_item(project, "waits", slots=0)
    make_item(project, "again", slots=0, duplicate_of=held)
    make_known(project, "known", purpose="probe")


@pytest.mark.parametrize(
    "values",
    [
        {"overlap": 2},
        {"overlap": 3},
        {"share_overlap": 9},
        {"share_percent": 40, "share_overlap": 2},
        {"share_percent": 100, "share_overlap": 3},
        {"overlap": 2, "share_percent": 60, "share_overlap": 4},
    ],
)
def test_what_a_change_is_said_to_touch_is_what_it_touches(
    lead: Membership, values: dict[str, Any]
) -> None:
    make_one_of_each(lead.project, lead)
    asked = copy(lead.project)
    for name, value in values.items():
        setattr(asked, name, value)
    counts = assignment.preview_resize(asked)
    states = (
        "more",
        "fewer",
        "same",
        "begun",
        "excluded",
        "accepted",
        "waiting",
        "repeats",
        "known",
    )
    assert sum(counts[state] for state in states) == counts["items"] == lead.project.items.count()
    project_settings.apply_change(lead.project, lead, values)
    assert resize_all(lead.project) == 0
    changed = Job.objects.filter(kind="places").values_list("done", flat=True)
    assert sum(changed) == counts["more"] + counts["fewer"]
    to_come = Slot.objects.at_work().in_use().values("item").distinct().count()
    assert counts["to_label"] == to_come


def test_the_share_is_drawn_alike_by_the_database_and_by_what_gives_the_places(
    lead: Membership,
) -> None:
    keys = [*(f"key-{number}" for number in range(200)), "Größe/é", "数"]
    Item.objects.bulk_create(
        Item(project=lead.project, key=key, position=place, category="c", ability="a")
        for place, key in enumerate(keys, start=1)
    )
    for percent in (1, 37, 99):
        lead.project.share_percent = percent
        drawn = sum(assignment.is_in_share(lead.project, key) for key in keys)
        groups = assignment._count_groups(lead.project, percent)
        assert sum(row[-1] for row in groups if row[7]) == drawn


def look(lead: Membership, **values: Any) -> tuple[int, str]:
    """What a preview says, by the page without a script."""
    status, page = post(lead, sent(lead, **values) | {"look": "1"})
    shown = page.split('id="reach"')[1].split("</div>")[0]
    return status, re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", shown.partition(">")[2])).strip()


def test_a_preview_says_why_a_change_touches_no_item_and_stores_nothing(lead: Membership) -> None:
    for key in "abc":
        make_resolution(make_item(lead.project, key, slots=0))
    status, said = look(lead, overlap=2)
    assert (status, said) == (
        200,
        "Not saved yet. If you save: No item needs more or fewer labels."
        " 3 items need no labels: their final labels came with the import.",
    )
    assert lead.project.overlap == 1
    assert not Event.objects.filter(kind="settings").exists()


def test_a_preview_counts_items_that_change_and_those_that_are_still_to_label(
    lead: Membership,
) -> None:
    make_item(lead.project, "a")
    make_item(lead.project, "b")
    say(lead, take(lead))
    assert look(lead, overlap=2)[1].endswith(
        "2 items need more labels."
        " 1 of them has a final label, which stays only if the existing labels decide."
    )
    assert look(lead, verify="on")[1].endswith(
        "1 item still needs labels and will follow the new settings."
    )
    assert look(lead, text_format="math")[1].endswith("2 items are shown differently.")
    assert look(lead, name="Other")[1].endswith("No item changes.")
    assert look(lead)[1] == "No changes."


def test_a_script_gets_the_preview_alone_with_what_is_wrong(lead: Membership) -> None:
    client = Client(headers={"HX-Request": "true"})
    client.force_login(lead.account)  # type: ignore[arg-type]
    address = reverse("settings", args=[lead.project.slug])
    answer = client.post(address, sent(lead, overlap=0) | {"look": "1"})
    part = answer.content.decode()
    assert answer.status_code == 422
    assert "Annotators per item</a>" in part
    assert "<html" not in part


@pytest.mark.postgresql
def test_a_count_that_takes_too_long_is_given_up_and_the_preview_says_so(
    lead: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_item(lead.project)
    monkeypatch.setitem(assignment._SHARE_HASH_SQL, "postgresql", "(SELECT pg_sleep(9)::text)")
    monkeypatch.setattr(assignment, "COUNT_TIMEOUT", "100ms")
    said = look(lead, share_percent=50, share_overlap=3)[1]
    assert said.endswith("Counting the items that change takes too long. You can still save.")
    assert post(lead, sent(lead, verify="on"))[0] == 302


def test_a_preview_asks_the_same_of_the_database_for_one_item_and_for_many(
    lead: Membership, django_assert_num_queries: Any
) -> None:
    project_settings.preview_change(
        lead.project, {"overlap": 2}
    )  # which looks the project's size up, for a minute
    with django_assert_num_queries(6, exact=False) as few:
        project_settings.preview_change(lead.project, {"overlap": 2, "verify": True})
    for _ in range(20):
        make_item(lead.project)
    with django_assert_num_queries(len(few)):
        project_settings.preview_change(lead.project, {"overlap": 2, "verify": True})


def test_no_lead_undoes_anothers_change_unawares(lead: Membership) -> None:
    stale = sent(lead, name="Mine")
    post(lead, sent(lead, hold_minutes=5))
    status, page = post(lead, stale)
    assert status == 422
    assert "Somebody else changed the settings" in page
    assert lead.project.hold_minutes == 5
    assert 'value="Mine"' in page
    post(lead, stale | {"seen": "1"})
    assert (lead.project.name, lead.project.hold_minutes) == ("Mine", 30)


def test_settings_that_are_sent_twice_are_changed_once(lead: Membership) -> None:
    data = sent(lead, name="Mine", overlap=3)
    assert [post(lead, data)[0] for _ in range(2)] == [302, 302]
    assert (lead.project.name, project_settings.list_changes(lead.project).count()) == ("Mine", 1)
    same = {"name": "Mine", "overlap": 3}
    assert not project_settings.apply_change(lead.project, lead, same, seen=0).changed
    client = browser_of(lead)
    shown = client.post(reverse("settings", args=[lead.project.slug]), data, follow=True)
    assert "These settings are saved already." in shown.content.decode()
    assert post(lead, data | {"seen": "x"})[0] == 302
    assert post(lead, data | {"overlap": "2", "seen": "x"})[0] == 422


def test_only_what_a_task_type_knows_is_offered() -> None:
    project: Project = importing.create_project("rated", task_type="rating")
    form = SettingsForm(project)
    assert "claim_check" not in form.fields
    assert "blind_first" not in form.fields
    rules = [value for value, _ in form.fields["rule.naturalness"].choices]  # type: ignore[attr-defined]
    assert {"median", "three", "majority"} <= set(rules)


def test_the_page_shows_what_was_changed_by_whom(lead: Membership) -> None:
    post(lead, sent(lead, hold_minutes=5, rule__choice="unanimous"))
    client = Client()
    client.force_login(lead.account)  # type: ignore[arg-type]
    page = client.get(reverse("settings", args=[lead.project.slug])).content.decode()
    assert "<del>30</del> <b>5</b>" in page
    assert "choice: unanimous" in page
    assert lead.alias in page


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "on"),
        (False, "off"),
        (0, "0"),
        ("", "nothing"),
        (None, "nothing"),
        ({"choice": "median", "extra": "odd"}, "choice: median; extra: odd"),
    ],
)
def test_a_changed_setting_is_described_in_words(value: Any, words: str) -> None:
    assert _describe_value(value) == words


def test_a_save_that_somebody_came_before_says_what_saving_again_would_do(
    lead: Membership,
) -> None:
    shared = copy(lead.project)
    shared.share_percent = 5
    not_shared = next(key for key in map(str, count()) if not assignment.is_in_share(shared, key))
    make_item(lead.project, key=not_shared)
    data = sent(lead, overlap=1, share_percent=5, share_overlap=2) | {"seen": "0"}
    assert post(lead, sent(lead, overlap=2))[0] == 302
    status, page = post(lead, data)
    assert (status, "Somebody else changed the settings" in page) == (422, True)
    assert "1 item needs fewer labels." in page
    assert "No changes." not in page


def test_a_save_at_the_same_moment_undoes_no_change_of_somebody_else(
    lead: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_item(lead.project)
    checked = project_settings.find_problems

    def find_problems(*given: Any) -> Any:
        """Somebody else saves while the form is being checked."""
        monkeypatch.setattr(project_settings, "find_problems", checked)
        theirs = Project.objects.get(pk=lead.project_id)
        project_settings.apply_change(theirs, lead, {"overlap": 2})
        return checked(*given)

    monkeypatch.setattr(project_settings, "find_problems", find_problems)
    status, page = post(lead, sent(lead, description="My words."))
    assert (status, "Somebody else changed the settings" in page) == (422, True)
    assert "1 item needs fewer labels." in page, "what saving again would do"
    assert Project.objects.get().overlap == 2
