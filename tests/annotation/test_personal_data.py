"""What is held about a person: given to them whole, and gone for good when they ask for that."""

import json
from io import StringIO
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.apps import apps
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.accounts.sessions import SessionStore
from annotation.errors import Refused
from annotation.labelling import assignment, comments
from annotation.models import Account, ApiToken, Event, Item, Label, Mark, Membership, Role, Slot
from annotation.projects import invitations, members
from annotation.projects.invitations import InvitationRequest
from annotation.reports import personal_data
from tests.builders import (
    Cast,
    browser_of,
    make_account,
    make_item,
    make_member,
    make_project,
    say,
    take,
)

pytestmark = pytest.mark.django_db
NAMES = ("hopperina", "murraya", "gh-signs-in", "gh@lab.example")


def arrived(people: Cast) -> tuple[Account, Client]:
    """Somebody who came by an invitation, signed in, worked, and whom the administration knows."""
    lead = people.lead
    key = invitations.create_invitation(
        lead, InvitationRequest("g", "annotator", "gh@lab.example"), now=timezone.now()
    )[1]
    client = Client()
    said = {"username": "gh-signs-in", "password1": "quite-a-word-1", "password2": "quite-a-word-1"}
    assert client.post(reverse("invitation", args=[key]), said).status_code == 302
    account = Account.objects.get(username="gh-signs-in")
    other = Client()
    other.post("/accounts/login/", {"login": "gh@lab.example", "password": "quite-a-word-1"})
    ApiToken.issue(account, "Hopperina's laptop")
    client.get("/sessions/")
    invitations.create_invitation(
        lead, InvitationRequest("later", "annotator", "GH@lab.example"), now=timezone.now()
    )
    place = reverse("admin:annotation_account_change", args=[account.pk])
    admin = browser_of(people.admin)
    form = admin.get(place).context["adminform"].form
    said = {name: form.initial.get(name) or "" for name in form.fields}
    for name in ("password", "groups", "user_permissions"):
        del said[name]
    said |= {"first_name": "Grace", "last_name": "Hopperina Murraya", "keys": "{}"}
    said |= {"last_login_0": "", "last_login_1": "", "date_joined_1": "10:00:00"}
    assert admin.post(place, said | {"date_joined_0": "2026-03-01"}).status_code == 302
    account.refresh_from_db()
    return account, client


def worked(people: Cast, account: Account) -> Membership:
    item = make_item(people.project, "spider")
    member = Membership.objects.get(account=account, project=people.project)
    say(member, take(member), comment="Six legs?")
    comments.add_comment(member, item, "Look again.", now=timezone.now())
    return member


def all_tables() -> str:
    """Every row of every table, and what sessions hold inside."""
    rows = [str(list(model.objects.values())) for model in apps.get_models()]
    kept = Session.objects.values_list("session_data", flat=True)
    sessions = [str(SessionStore().decode(data)) for data in kept]
    return " ".join([*rows, *sessions]).casefold()


def test_of_somebody_anonymised_no_name_and_no_address_is_left(people: Cast) -> None:
    account, _ = arrived(people)
    member = worked(people, account)
    assert all(name in all_tables() for name in NAMES)
    personal_data.anonymise(account, people.admin, now=timezone.now())
    assert [name for name in NAMES if name in all_tables()] == []
    member.refresh_from_db()
    assert (member.alias, member.active, member.account_id) == ("g", False, account.pk)
    label = Label.objects.get()
    assert (label.member, label.comment, label.current) == (member, "Six legs?", True)


def test_who_is_anonymised_is_out_at_once_and_stays_out(people: Cast) -> None:
    account, client = arrived(people)
    assert client.get("/").status_code == 200
    personal_data.anonymise(account, people.admin, now=timezone.now())
    assert client.get("/").status_code == 302
    assert Client().login(username=f"nobody-{account.pk}", password="quite-a-word-1") is False
    again = Client().post("/accounts/password/reset/", {"email": "gh@lab.example"})
    assert again.status_code == 302


def test_others_stay_signed_in_also_if_a_name_is_part_of_their_words(people: Cast) -> None:
    client, account = browser_of(people.lead.account), make_account("a")
    mine = browser_of(account)
    personal_data.anonymise(account, people.admin, now=timezone.now())
    assert [one.get("/").status_code for one in (client, mine)] == [200, 302]


def test_links_of_who_is_anonymised_open_nothing(people: Cast) -> None:
    now = timezone.now()
    lead = make_member(people.project, role="lead")
    _, key = invitations.create_invitation(lead, InvitationRequest("friend", "annotator"), now=now)
    personal_data.anonymise(lead.account, people.admin, now=now)
    assert invitations.find_invitation(key, now=now) is None


def test_that_somebody_was_anonymised_is_on_record(people: Cast) -> None:
    account, _ = arrived(people)
    personal_data.anonymise(account, people.admin, now=timezone.now())
    event = Event.objects.filter(kind="account").latest("pk")
    assert (event.account, event.new) == (people.admin, {"account": "anonymised"})
    suspended = members.list_changes(people.project)[0]
    assert (suspended.subject, suspended.new) == ("g", {"active": False})


def test_items_kept_for_somebody_anonymised_go_to_everybody(people: Cast) -> None:
    item = make_item(people.project)
    assignment.reserve_slots(people.lead, [item], [people.annotator], now=timezone.now())
    personal_data.anonymise(people.annotator.account, people.admin, now=timezone.now())
    assert Slot.objects.get().reserved_for is None


def test_nobody_leaves_a_project_or_the_site_without_a_lead(people: Cast) -> None:
    with pytest.raises(Refused, match="no lead"):
        personal_data.anonymise(people.lead.account, people.admin, now=timezone.now())
    with pytest.raises(Refused, match="no site admin"):
        personal_data.anonymise(people.admin, None, now=timezone.now())
    people.lead.account.refresh_from_db()
    assert people.lead.account.is_active


def test_a_lead_empties_an_account_by_typing_the_name(people: Cast) -> None:
    client, place = (
        browser_of(people.lead.account),
        reverse("anonymise", args=[people.project.slug]),
    )
    account = people.annotator.account
    assert "cannot be undone" in client.get(place, {"member": "annotator"}).content.decode()
    assert client.post(place, {"member": "annotator", "again": "annot"}).status_code == 422
    account.refresh_from_db()
    assert account.is_active
    assert client.post(place, {"member": "annotator", "again": "annotator"}).status_code == 302
    account.refresh_from_db()
    assert (account.is_active, account.username) == (False, f"nobody-{account.pk}")


def test_a_lead_does_so_only_where_they_lead_all_that_the_person_is_in(people: Cast) -> None:
    elsewhere = make_project("elsewhere")
    make_member(elsewhere, alias="x", account=people.annotator.account)
    client, place = (
        browser_of(people.lead.account),
        reverse("anonymise", args=[people.project.slug]),
    )
    said = {"member": "annotator", "again": "annotator"}
    assert client.post(place, said).status_code == 403
    make_member(elsewhere, role=Role.LEAD, alias="y", account=people.lead.account)
    assert client.get(place, said).status_code == 200
    assert client.get(place, {"member": "lead"}).status_code == 403
    Account.objects.filter(pk=people.annotator.account_id).update(is_superuser=True)
    assert client.post(place, said).status_code == 403
    assert browser_of(people.admin).get(place, said).status_code == 200


def test_the_command_says_what_it_would_do_and_does_it_when_told(people: Cast) -> None:
    out = StringIO()
    name = people.annotator.account.username
    call_command("anonymise", name, stdout=out)
    assert f"annotator in {people.project.slug}\n" in out.getvalue()
    assert Account.objects.filter(username=name).exists()
    call_command("anonymise", name, "--apply", stdout=out)
    assert not Account.objects.filter(username=name).exists()
    with pytest.raises(CommandError, match="There is no user"):
        call_command("anonymise", name, stdout=out)


def test_a_person_takes_all_that_is_held_about_them_and_nothing_of_others(people: Cast) -> None:
    account, client = arrived(people)
    member = worked(people, account)
    other = make_item(people.project, "other")
    Mark.objects.create(member=member, item=other, kind=Mark.Kind.FLAG, note="Rude.")
    EmailAddress.objects.create(user=account, email="grace@home.example")
    say(people.lead, take(people.lead), comment="Said by another.")
    answer = client.get(reverse("my-data-file"))
    held: dict[str, Any] = json.loads(answer.content)
    assert answer.headers["Content-Disposition"] == 'attachment; filename="my-data.json"'
    assert held["account"]["email"] == "gh@lab.example"
    assert held["account"]["last_name"] == "Hopperina Murraya"
    assert [token["name"] for token in held["tokens"]] == ["Hopperina's laptop"]
    assert held["sessions"]
    [place] = held["projects"]
    assert (place["alias"], place["labels"][0]["item"]) == ("g", "spider")
    assert place["labels"][0]["comment"] == "Six legs?"
    assert place["comments"][0]["text"] == "Look again."
    assert [(one["item"], one["note"]) for one in place["marks"]] == [("other", "Rude.")]
    assert "grace@home.example" in {one["email"] for one in held["addresses"]}
    assert {event["kind"] for event in place["events"]} >= {"invitation", "label", "comment"}
    text = answer.content.decode()
    assert "Said by another" not in text
    assert "password" not in text
    assert "digest" not in text


def test_work_on_an_item_that_was_excluded_since_is_in_the_file(people: Cast) -> None:
    account, client = arrived(people)
    worked(people, account)
    Item.objects.update(deleted_at=timezone.now())
    [place] = client.get(reverse("my-data-file")).json()["projects"]
    assert (place["labels"][0]["item"], place["comments"][0]["item"]) == ("spider", "spider")


def test_a_silent_check_is_work_like_any_other_in_the_file(people: Cast) -> None:
    account, client = arrived(people)
    worked(people, account)
    Label.objects.update(stage="control")
    assert "control" not in client.get(reverse("my-data-file")).content.decode()


def test_the_page_tells_who_knows_one_as_what() -> None:
    account = make_account()
    assert "You have no projects" in browser_of(account).get("/my-data/").content.decode()
    make_member(make_project("birds"), alias="heron", account=account)
    assert "heron" in browser_of(account).get("/my-data/").content.decode()
