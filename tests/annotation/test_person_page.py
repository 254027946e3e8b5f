"""The page of one member, for leads."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.models import Item, Membership, Project, Role, Slot
from annotation.reports import person
from tests.builders import browser_of, make_item, make_known, make_member, make_project, say, take

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project(overlap=2)


def shown(who: Membership, alias: str, status: int = 200) -> str:
    page = browser_of(who).get(reverse("person", args=[who.project.slug, alias]))
    assert page.status_code == status
    return page.content.decode()


def test_labels_agreement_and_the_latest_words_are_those_of_the_person(project: Project) -> None:
    ana, ben = make_member(project, alias="ana"), make_member(project, alias="be/n <b>")
    for number in range(4):
        make_item(project, f"item-{number}")
    for choice in ("valid", "valid", "invalid"):
        say(ana, take(ana), choice, seconds=10, comment="<i>odd</i>" if choice == "invalid" else "")
    for choice in ("valid", "invalid", "invalid", "valid"):
        say(ben, take(ben), choice)
    report = person.build_report(ana, timezone.now())
    assert (report.labels, report.counted, report.seconds.median) == (3, 3, 10)
    assert [(one.alias, one.items, one.alike) for one in report.others] == [("be/n <b>", 3, 2)]
    assert report.choices == (("valid", "Valid", 2), ("invalid", "Invalid", 1))
    page = shown(make_member(project, Role.LEAD), "ana")
    assert "&lt;i&gt;odd&lt;/i&gt;" in page
    assert "<i>odd" not in page
    assert "66.7 %" in page
    assert "be/n &lt;b&gt;" in page


@pytest.mark.parametrize("gone", [{"deleted_at": timezone.now()}, {"purpose": "probe"}])
def test_people_are_not_compared_on_items_that_left_the_data_set(
    project: Project, gone: dict[str, Any]
) -> None:
    ana, ben = make_member(project, alias="ana"), make_member(project, alias="ben")
    for number in range(2):
        make_item(project, f"item-{number}")
    for member in (ana, ben):
        say(member, take(member))
        say(member, take(member))
    Item.objects.filter(key="item-0").update(**gone)
    report = person.build_report(ana, timezone.now())
    assert [(one.items, one.alike) for one in report.others] == [(1, 1)]


def test_who_labels_faster_than_one_can_read_is_told_by_the_words_a_second(
    project: Project,
) -> None:
    ana, lead = make_member(project, alias="ana"), make_member(project, Role.LEAD)
    text = " ".join(["word"] * 40)
    for number in range(10):
        make_item(project, f"item-{number}", texts={"prompt": "", "gold": text, "perturbed": text})
        say(ana, take(ana), seconds=2)
        if number == 8:
            assert "Words a second" not in shown(lead, "ana")
    page = shown(lead, "ana")
    assert "<dt>Words a second</dt>" in page
    assert "faster than one can read" in page


def test_labels_of_what_became_a_control_item_or_was_excluded_are_not_counted(
    project: Project,
) -> None:
    ana, lead = make_member(project, alias="ana"), make_member(project, Role.LEAD)
    for number in range(4):
        make_item(project, f"item-{number}")
        say(ana, take(ana))
    Item.objects.filter(key="item-1").update(purpose="probe")
    Item.objects.filter(key="item-2").update(deleted_at=timezone.now())
    assert person.build_report(ana, timezone.now()).labels == 2
    home = browser_of(lead).get(reverse("project", args=[project.slug])).content.decode()
    assert '?annotator=ana&amp;items=tests">2</a>' in home
    page = shown(lead, "ana")
    [link] = re.findall(r'href="([^"]*annotator=ana[^"]*)">2</a>', page)
    behind = browser_of(lead).get(link.replace("&amp;", "&")).content.decode()
    assert [key for key in ("item-0", "item-1", "item-3") if f">{key}<" in behind] == [
        "item-0", "item-3",
    ]  # fmt: skip
    [found] = Membership.objects.filter(pk=ana.pk).for_progress()
    assert (found.given, found.counted) == (2, 2)
    assert Slot.objects.count_labels(project.pk) == (2, 4)


def test_control_items_and_rounds_are_on_the_page(project: Project) -> None:
    Project.objects.filter(pk=project.pk).update(probe_every=1, practice_items=1, practice_pass=1)
    member = Membership.objects.select_related("project").get(
        pk=make_member(project, alias="ana").pk
    )
    make_known(project, "practised")
    make_known(project, "checked", purpose="probe")
    make_item(project), make_item(project)
    say(member, take(member))
    member.refresh_from_db()
    say(member, take(member, draw=0), "invalid")
    page = shown(make_member(project, Role.LEAD), "ana")
    assert "0 of 1 right" in page
    assert "Round 1: 1 of 1 right, 1 needed" in page


def test_nobody_else_sees_it_and_nobody_of_that_name_is_no_page(project: Project) -> None:
    ana = make_member(project, alias="ana")
    shown(ana, "ana", 403)
    lead = make_member(project, Role.LEAD)
    shown(lead, "nobody", 404)
    assert "No labels yet" in shown(lead, "ana")
    for page in ("members", "project", "pace"):
        make_item(project)
        content = browser_of(lead).get(reverse(page, args=[project.slug])).content.decode()
        assert reverse("person", args=[project.slug, "ana"]) in content


def test_the_number_of_queries_does_not_grow_with_the_labels(project: Project) -> None:
    ana, lead = make_member(project, alias="ana"), make_member(project, Role.LEAD)

    def count() -> int:
        shown(lead, "ana")
        with CaptureQueriesContext(connection) as seen:
            person.build_report(ana, timezone.now())
        return len(seen)

    make_item(project)
    say(ana, take(ana))
    before = count()
    for _ in range(5):
        make_item(project)
        say(ana, take(ana))
    assert count() == before


def test_excluded_items_and_those_with_known_answers_are_no_disagreement(project: Project) -> None:
    ana, ben = make_member(project, alias="ana"), make_member(project, alias="ben")
    items = [make_item(project, f"item-{number}") for number in range(3)]
    for _ in items:
        say(ana, take(ana)), say(ben, take(ben))
    Item.objects.filter(pk=items[0].pk).update(deleted_at=timezone.now())
    Item.objects.filter(pk=items[1].pk).update(purpose="probe")
    report = person.build_report(ana, timezone.now())
    assert [(one.items, one.alike) for one in report.others] == [(1, 1)]
