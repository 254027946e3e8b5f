"""The page of the audit: what was changed, by whom, searched by leads and nobody else."""

from datetime import UTC, datetime

import pytest
from django.urls import reverse

from annotation.errors import Refused
from annotation.labelling import queue
from annotation.models import Account, ApiToken, Event, Mark, Membership
from annotation.projects import audit, members
from annotation.projects.audit import AuditChange, AuditSearch
from tests.builders import Cast, browser_of, make_item, make_project, say, take

pytestmark = pytest.mark.django_db


def page_of(people: Cast, **asked: str) -> str:
    client = browser_of(people.lead.account)
    return client.get(reverse("audit", args=[people.project.slug]), asked).content.decode()


def last(kind: str) -> Event:
    return Event.objects.filter(kind=kind).latest("pk")


def happened(people: Cast, subject: str, at: datetime) -> Event:
    return Event.objects.create(
        project=people.project, kind="run started", subject=subject, created_at=at
    )


def test_a_change_is_told_in_words_with_what_was_before(people: Cast) -> None:
    members.suspend(people.lead, people.annotator)
    [told] = audit.load_page(audit.search_events(people.project, AuditSearch())).entries
    assert (told.who, told.kind, told.event.subject) == ("lead", "member", "annotator")
    assert told.changes == (AuditChange("state", "active", "suspended"),)
    page = page_of(people)
    assert "suspended" in page
    assert "{" not in page[page.index("<main") : page.index("</main")]


def test_what_is_no_change_is_told_as_it_is(people: Cast) -> None:
    data = {"new": 3, "bad": 0, "kept": True, "people": ["ada", "ben"], "note": "", "n": {"a": 1}}
    Event.record("import", "p", project_id=people.project.pk, member_id=None, **data)
    [told] = audit.load_page(audit.search_events(people.project, AuditSearch())).entries
    assert told.who == audit.NO_MEMBER
    said = {change.name: change.new for change in told.changes}
    assert said == {
        "new": "3",
        "bad": "0",
        "kept": "yes",
        "people": "ada, ben",
        "n": "a: 1",
    }


def test_what_is_gone_is_told_as_nothing(people: Cast) -> None:
    event = Event(kind="undo", subject="a", data={"old": {"choice": "valid"}, "new": {}})
    assert list(audit.describe_changes(event)) == [AuditChange("choice", "valid", "nothing")]


def test_a_label_a_change_of_it_and_what_follows_are_on_record(people: Cast) -> None:
    item = make_item(people.project, "spider")
    offer = take(people.annotator)
    say(people.annotator, offer)
    assert last("label").new == {"choice": "valid", "revision": 1, "stage": "label"}
    made = last("resolution")
    assert (made.subject, made.member, made.old) == (item.key, None, {})
    assert made.new == {"resolution": "valid", "by": "first label", "from": "labels"}
    say(people.annotator, queue.reopen_item(people.annotator, item.key), "invalid")
    assert last("label").old == {"choice": "valid", "revision": 1}
    assert last("resolution").old["resolution"] == "valid"
    assert last("resolution").new["resolution"] == "invalid"
    queue.undo_label(people.annotator)
    assert (last("undo").old, last("undo").new) == ({"choice": "invalid"}, {})
    assert (last("resolution").old["resolution"], last("resolution").new) == ("invalid", {})


@pytest.mark.parametrize(
    "asked, found",
    [
        ({"kind": "run started"}, ["run 3", "run 2", "run 1"]),
        ({"subject": "RUN 2"}, ["run 2"]),
        ({"person": "lead"}, ["annotator"]),
        ({"person": "somebody"}, []),
        ({"kind": "king"}, []),
        ({"first": "2026-03-02", "last": "2026-03-02"}, ["run 2"]),
        ({"last": "2026-03-01"}, ["run 1"]),
        ({"kind": "king", "last": "9999-12-31"}, []),
        ({"subject": "%"}, []),
    ],
)
def test_the_page_is_narrowed_by_its_address(
    people: Cast, asked: dict[str, str], found: list[str]
) -> None:
    for day in (1, 2, 3):
        happened(people, f"run {day}", datetime(2026, 3, day, 23, 59, 59, tzinfo=UTC))
    members.suspend(people.lead, people.annotator)
    answer = browser_of(people.lead.account).get(
        reverse("audit", args=[people.project.slug]), asked
    )
    shown = [entry.event.subject for entry in answer.context["page"].entries]
    assert shown == found
    assert found or "No entries match" in answer.content.decode()


def test_pages_follow_each_other_without_a_gap_also_within_a_moment(people: Cast) -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    for number in range(7):
        happened(people, f"run {number}", at)
    found, seen, after = audit.search_events(people.project, AuditSearch()), [], ""
    while True:
        page = audit.load_page(found, after, size=3)
        seen += [entry.event.subject for entry in page.entries]
        after = page.older
        if not after:
            break
    assert seen == [f"run {number}" for number in reversed(range(7))]


# ["0001-01-01T00:00:00+23:59",1] and ["2026-03-01T00:00:00+00:00",1e999]
BEFORE_ALL = "WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzIzOjU5IiwxXQ"
ENDLESS = "WyIyMDI2LTAzLTAxVDAwOjAwOjAwKzAwOjAwIiwxZTk5OV0"


@pytest.mark.parametrize(
    "after",
    ["x", "bnVsbA", "WzEsMl0", "W1siMjAyNiJdXQ", "é", "W" * 9000, BEFORE_ALL, ENDLESS],
)
def test_a_place_that_no_page_gave_is_refused_in_words(people: Cast, after: str) -> None:
    happened(people, "run 1", datetime(2026, 3, 1, tzinfo=UTC))
    with pytest.raises(Refused, match="Start with the newest"):
        audit.load_page(audit.search_events(people.project, AuditSearch()), after)
    client = browser_of(people.lead.account)
    answer = client.get(reverse("audit", args=[people.project.slug]), {"after": after})
    assert answer.status_code == 422


@pytest.mark.parametrize("asked", [{"first": "never"}, {"kind": "a\0b"}, {"subject": "a\0b"}])
def test_what_cannot_be_looked_for_is_said_at_its_field(
    people: Cast, asked: dict[str, str]
) -> None:
    client = browser_of(people.lead.account)
    answer = client.get(reverse("audit", args=[people.project.slug]), asked)
    assert answer.status_code == 422
    assert "field-error" in answer.content.decode()


def test_a_lead_who_sees_labels_here_has_seen_what_others_said(people: Cast) -> None:
    make_item(people.project, "spider")
    say(people.annotator, take(people.annotator))
    seen = Mark.objects.of_member(people.lead.pk, Mark.Kind.SEEN)
    assert not seen.exists()
    page_of(people, subject="elsewhere")
    assert not seen.exists()
    page_of(people)
    assert seen.get().item.key == "spider"


def test_what_a_text_does_not_do_to_the_page(people: Cast) -> None:
    evil = "<script>alert(1)</script>{{ request }}\u202e"
    Event.record(
        "flag", evil[:200], project_id=people.project.pk, member_id=None, note=evil, **{evil: 1}
    )
    page = page_of(people)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{ request }}" in page


def test_the_audit_of_the_site_has_what_belongs_to_no_project(people: Cast) -> None:
    happened(people, "run 1", datetime(2026, 3, 1, tzinfo=UTC))
    token, _ = ApiToken.issue(people.lead.account, "Ada's laptop")
    page = browser_of(people.admin).get(reverse("audit-site")).content.decode()
    assert token.prefix in page
    assert "run 1" not in page
    assert browser_of(people.lead.account).get(reverse("audit-site")).status_code == 403
    assert token.prefix not in page_of(people)
    assert "laptop" not in str(Event.objects.values())


def test_a_site_admin_who_takes_a_place_is_on_record(people: Cast) -> None:
    said = {"member": "annotator", "action": "suspend"}
    browser_of(people.admin).post(reverse("members", args=[people.project.slug]), said)
    place = Membership.objects.get(project=people.project, account=people.admin)
    taken = Event.objects.get(kind="member", subject=place.alias)
    assert (taken.member, taken.new) == (place, {"role": "lead"})


def test_rights_of_accounts_that_the_administration_changes_are_on_record(people: Cast) -> None:
    client, account = browser_of(people.admin), people.stranger
    place = reverse("admin:annotation_account_change", args=[account.pk])
    form = client.get(place).context["adminform"].form
    said = {name: form.initial.get(name) or "" for name in form.fields}
    for name in ("password", "groups", "user_permissions"):
        del said[name]
    said |= {"is_superuser": "on", "is_active": "on", "email": "ada@lab.example", "keys": "{}"}
    said |= {"last_login_0": "", "last_login_1": "", "date_joined_0": "2026-03-01"}
    answer = client.post(place, said | {"date_joined_1": "10:00:00"})
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    event = last("account")
    assert (event.subject, event.account) == (f"account {account.pk}", people.admin)
    assert (event.old, event.new["is_superuser"]) == ({"is_superuser": False}, True)
    assert event.new["email"] == "changed"
    assert "ada@" not in str(Event.objects.values())


def test_accounts_are_never_deleted_in_the_administration(people: Cast) -> None:
    place = reverse("admin:annotation_account_delete", args=[people.stranger.pk])
    assert browser_of(people.admin).post(place, {"post": "yes"}).status_code == 403
    assert Account.objects.filter(pk=people.stranger.pk).exists()


def test_a_password_that_the_administration_sets_is_on_record(people: Cast) -> None:
    place = reverse("admin:auth_user_password_change", args=[people.stranger.pk])
    new = {"password1": "quite-another-word", "password2": "quite-another-word"}
    answer = browser_of(people.admin).post(place, new | {"usable_password": "true"})
    assert answer.status_code == 302
    assert last("account").new == {"password": "set anew"}


def test_a_project_that_the_administration_makes_and_changes_is_on_record(people: Cast) -> None:
    client, other = browser_of(people.admin), make_project("other")
    place = reverse("admin:annotation_project_change", args=[other.pk])
    form = client.get(place).context["adminform"].form
    said = {name: form.initial.get(name) or "" for name in form.fields} | {"hold_minutes": 7}
    formset = {"members-TOTAL_FORMS": 0, "members-INITIAL_FORMS": 0}
    answer = client.post(place, said | formset | {"archived_at_0": "", "archived_at_1": ""})
    assert answer.status_code == 302
    event = last("settings")
    assert (event.project, event.account) == (other, people.admin)
    assert (event.old, event.new) == ({"hold_minutes": 30}, {"hold_minutes": 7})
