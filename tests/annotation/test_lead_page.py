"""What the first page of a project tells its leads to do, and where each number leads."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.db import project_counts
from annotation.labelling import comments, qualification, queue
from annotation.models import Label, Membership, Project, Role, Slot
from annotation.reports import attention
from tests.builders import (
    TEXTS,
    browser_of,
    make_item,
    make_known,
    make_member,
    make_project,
    say,
    take,
)

pytestmark = pytest.mark.django_db
NOW = timezone.now()


@pytest.fixture
def project() -> Project:
    return make_project(overlap=2)


@pytest.fixture
def lead(project: Project) -> Membership:
    return make_member(project, Role.LEAD, created_at=NOW)


def tasks(lead: Membership, now: Any = NOW) -> dict[str, attention.Task]:
    people = list(Membership.objects.in_project(lead.project).for_progress())
    return {f"{one.number} {one.text}": one for one in attention.list_tasks(lead, people, now)}


def keys_behind(lead: Membership, task: attention.Task) -> set[str]:
    """The keys of the items on the page behind a number."""
    client: Client = browser_of(lead)
    page = client.get(reverse(task.page, args=[lead.project.slug]) + task.query)
    assert page.status_code == 200
    return {item.key for item in page.context["page"]}


def test_nothing_to_do_is_said(lead: Membership) -> None:
    make_item(lead.project)
    assert tasks(lead) == {}
    page = browser_of(lead).get(reverse("project", args=[lead.project.slug]))
    assert "Nothing waits for you" in page.content.decode()
    annotator = browser_of(make_member(lead.project)).get(
        reverse("project", args=[lead.project.slug])
    )
    assert "To do" not in annotator.content.decode()


def test_items_lead_to_what_they_wait_for(lead: Membership) -> None:
    ana, _ = make_member(lead.project), make_member(lead.project)
    for key in ("flagged", "commented", "fresh"):
        make_item(lead.project, key)
    say(ana, take(ana))
    say(ana, take(ana), "invalid", comment="Is it?")
    queue.toggle_flag(ana, "flagged")
    found = tasks(lead)
    assert set(found) == {
        "1 item has a flag without an answer",
        "1 item has a comment without an answer",
        "2 items wait for another annotator",
    }
    assert keys_behind(lead, found["1 item has a flag without an answer"]) == {"flagged"}
    assert keys_behind(lead, found["1 item has a comment without an answer"]) == {"commented"}
    waiting = keys_behind(lead, found["2 items wait for another annotator"])
    assert waiting == {"flagged", "commented"}


def test_disagreements_and_verifications_are_counted(lead: Membership) -> None:
    Project.objects.filter(pk=lead.project.pk).update(verify=True)
    lead.project.refresh_from_db()
    ana, ben = (
        Membership.objects.select_related("project").get(pk=make_member(lead.project).pk)
        for _ in range(2)
    )
    make_item(lead.project, "agreed"), make_item(lead.project, "disputed")
    for person, choices in ((ana, ("valid", "valid")), (ben, ("valid", "invalid"))):
        for choice in choices:
            say(person, take(person), choice)
    found = tasks(lead)
    assert set(found) == {"1 item needs a decision", "1 item waits for verification"}
    page = browser_of(lead).get(reverse("project", args=[lead.project.slug])).content.decode()
    assert f'<a href="{reverse("adjudicate", args=[lead.project.slug])}"><b>1</b>' in page
    assert f'<a href="{reverse("verify", args=[lead.project.slug])}"><b>1</b>' in page


def test_a_thread_of_comments_counts_until_it_is_withdrawn(lead: Membership) -> None:
    ana = make_member(lead.project)
    item = make_item(lead.project, "discussed")
    say(ana, take(ana))
    one = "1 item has a comment without an answer"
    comments.add_comment(ana, item, "Look.", now=NOW)
    assert one in tasks(lead)
    comments.withdraw_comment(ana, item, 1, now=NOW)
    assert one not in tasks(lead)
    comments.add_comment(ana, item, "Look again.", now=NOW)
    queue.toggle_flag(ana, "discussed", now=NOW)
    assert one in tasks(lead)
    comments.add_comment(lead, item, "It is fine.", now=NOW + timedelta(minutes=1))
    assert not any("answer" in text for text in tasks(lead))
    comments.add_comment(ana, item, "Is it?", now=NOW + timedelta(minutes=2))
    assert one in tasks(lead)


def test_who_waits_for_a_decision_on_qualification_is_named(lead: Membership) -> None:
    project = lead.project
    make_item(project)
    Project.objects.filter(pk=project.pk).update(practice_items=1, practice_pass=1)
    make_known(project, "practice-1")
    project.refresh_from_db()
    failed, _begins = (make_member(project, alias=alias) for alias in ("failed", "begins"))
    say(failed, take(failed), "invalid")
    task = tasks(lead)["1 person waits for a decision on qualification"]
    assert task.people == ("failed",)
    page = browser_of(lead).get(reverse(task.page, args=[project.slug])).content.decode()
    assert "needs your decision" in page
    qualification.waive(failed, lead=lead)
    assert not any("qualification" in text for text in tasks(lead))


def test_who_is_below_the_threshold_of_control_items_is_named(lead: Membership) -> None:
    Project.objects.filter(pk=lead.project.pk).update(probe_every=1)
    good, bad = (make_member(lead.project, alias=alias) for alias in ("good", "bad"))
    for number in range(8):
        make_item(lead.project)
        make_known(lead.project, f"known-{number}", purpose="probe")
    for person, choice in ((good, "valid"), (bad, "invalid")):
        member = Membership.objects.select_related("project").get(pk=person.pk)
        for _ in range(attention.LEAST_CONTROL_ITEMS):
            say(member, take(member, draw=0), choice)
    found = tasks(lead)
    assert found["1 person has under 70 % of the control items right"].people == ("bad",)
    Project.objects.filter(pk=lead.project.pk).update(practice_items=4, practice_pass=0)
    lead.project.refresh_from_db()
    assert not any("control items" in text for text in tasks(lead))


def test_who_labels_faster_than_one_can_read_is_named(lead: Membership) -> None:
    words = "The answer has many words that somebody must read. " * 10
    people = {alias: make_member(lead.project, alias=alias) for alias in ("hasty", "calm", "new")}
    for _ in range(attention.LEAST_FOR_SPEED):
        make_item(lead.project, texts={"gold": words, "perturbed": words}, slots=3)
    for alias, seconds in (("hasty", 1.5), ("calm", 40.0), ("new", 0.5)):
        member = people[alias]
        for _ in range(attention.LEAST_FOR_SPEED - (alias == "new")):
            say(member, take(member), seconds=seconds)
    assert attention.find_hasty(lead.project, timezone.now()) == ("hasty",)
    assert tasks(lead)["1 person labels faster than one can read"].page == "pace"
    assert attention.find_hasty(lead.project, timezone.now() + attention.AWAY) == ()


def test_short_items_say_nothing_about_reading(lead: Membership) -> None:
    words = "word " * (attention.WORDS_FOR_SPEED - 1 - len(TEXTS["prompt"].split()))
    ana = make_member(lead.project, alias="ana")
    for _ in range(attention.LEAST_FOR_SPEED):
        make_item(lead.project, texts={"gold": words, "perturbed": words})
        say(ana, take(ana), seconds=0.3)
    assert attention.measure_speeds(lead.project, timezone.now()) == {}


def test_who_has_not_come_for_three_days_is_named(lead: Membership) -> None:
    long_ago = NOW - timedelta(days=10)
    for alias in ("came", "gone", "never"):
        member = make_member(lead.project, alias=alias, created_at=long_ago)
        make_item(lead.project, slots=1)
        if alias != "never":
            say(member, take(member))
    make_member(lead.project, alias="invited-today", created_at=NOW)
    make_member(lead.project, Role.RESEARCHER, alias="reader", created_at=long_ago)
    make_member(lead.project, alias="left", created_at=long_ago, active=False)
    Label.objects.filter(member__alias="gone").update(created_at=NOW - timedelta(days=4))
    [task] = [one for text, one in tasks(lead).items() if "three days" in text]
    assert task.people == ("gone", "never")
    Slot.objects.filter(state="open").update(state="closed")
    assert not any("three days" in text for text in tasks(lead)), "no label is left to give"


def test_the_number_of_queries_does_not_grow_with_the_people(lead: Membership) -> None:
    def count() -> int:
        client = browser_of(lead)
        client.get(reverse("project", args=[lead.project.slug]))
        with CaptureQueriesContext(
            connection,
        ) as seen:
            client.get(reverse("project", args=[lead.project.slug]))
        return len(seen)

    make_item(lead.project, slots=20)
    before = count()
    for _ in range(6):
        member = make_member(lead.project)
        say(member, take(member), seconds=3)
    assert count() == before


def test_in_a_large_project_the_labels_of_people_are_not_counted_at_every_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lead = make_member(make_project(overlap=2), Role.LEAD)
    ann, client = make_member(lead.project, alias="ann"), browser_of(lead)
    for number in range(3):
        make_item(lead.project, f"item-{number}")
    home = f"/projects/{lead.project.slug}/"
    link = "?annotator=ann&amp;items=tests"
    say(ann, take(ann))
    assert f'{link}">1</a>' in client.get(home).text
    say(ann, take(ann))
    assert f'{link}">2</a>' in client.get(home).text
    monkeypatch.setattr(project_counts, "LARGE_PROJECT", 3)
    monkeypatch.setattr(project_counts, "ITEMS_PER_SECOND", 0.05)
    assert f'{link}">2</a>' in client.get(home).text
    say(ann, take(ann))
    assert f'{link}">2</a>' in client.get(home).text
