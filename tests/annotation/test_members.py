"""Who is in a project and as what: changed by leads, kept in the audit, and nothing lost."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.errors import Refused
from annotation.labelling import assignment
from annotation.models import Account, ApiToken, Draft, Event, Label, Membership, Role, Slot
from annotation.projects import access, invitations, members, sign_in_links
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
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def page(people: Cast) -> str:
    return reverse("members", args=[people.project.slug])


def last(people: Cast) -> Event:
    return members.list_changes(people.project)[0]


def test_a_new_role_holds_at_the_next_request_and_is_in_the_audit(people: Cast) -> None:
    change = {"member": "annotator", "action": "role", "role": "researcher"}
    assert browser_of(people.lead).post(page(people), change).status_code == 302
    results = reverse("results", args=[people.project.slug])
    assert browser_of(people.annotator).get(results).status_code != 403
    event = last(people)
    assert (event.member, event.subject) == (people.lead, "annotator")
    assert event.data == {"old": {"role": "annotator"}, "new": {"role": "researcher"}}


def test_a_page_from_before_another_lead_s_change_sets_back_neither_role_nor_group(
    people: Cast,
) -> None:
    lead, shown = browser_of(people.lead), {"initial-role": "researcher", "initial-group": ""}
    members.change_role(people.lead, people.annotator, "researcher")
    assert all(
        f'name="{n}" value="{was}"' in lead.get(page(people)).text for n, was in shown.items()
    )
    members.change_role(people.lead, people.annotator, "annotator")
    change = {"member": "annotator", "action": "role", "role": "researcher", "group": "birds"}
    said = lead.post(page(people), change | shown, follow=True).text
    assert "annotator is now annotator, group birds." in said
    lead.post(page(people), change | shown | {"role": "adjudicator", "group": ""})
    people.annotator.refresh_from_db()
    assert (people.annotator.role, people.annotator.group) == ("adjudicator", "birds")


def test_the_same_role_again_is_no_change(people: Cast) -> None:
    members.change_role(people.lead, people.annotator, Role.ANNOTATOR)
    assert not members.list_changes(people.project).exists()


def test_who_is_suspended_is_out_at_once_and_keeps_all_that_they_wrote(people: Cast) -> None:
    item = make_item(people.project)
    say(people.annotator, take(people.annotator))
    Draft.objects.create(member=people.annotator, item=item, revision=1)
    client, project = browser_of(people.annotator), reverse("project", args=[people.project.slug])
    _, key = ApiToken.issue(people.annotator.account, "laptop")
    assert client.get(project).status_code == 200
    members.suspend(people.lead, people.annotator)
    answer = client.get(project)
    assert answer.status_code == 403
    assert "You are suspended" in answer.content.decode()
    assert "Ask a lead of the project" in answer.content.decode()
    home = client.get("/").content.decode()
    assert f"You are suspended in {people.project}" in home
    assert "You have no projects yet" not in home
    api = Client(headers={"Authorization": f"Bearer {key}"})
    told = api.get(f"/api/v1/projects/{people.project.slug}/")
    assert (told.status_code, "You are suspended" in told.json()["detail"]) == (403, True)
    assert Label.objects.get().current
    assert Draft.objects.get().member == people.annotator


def test_who_is_restored_goes_on_where_they_were(people: Cast) -> None:
    members.suspend(people.lead, people.annotator)
    members.restore(people.lead, people.annotator)
    assert last(people).data == {"old": {"active": False}, "new": {"active": True}}
    project = reverse("project", args=[people.project.slug])
    assert browser_of(people.annotator).get(project).status_code == 200


def test_items_kept_for_somebody_who_is_suspended_go_to_everybody(people: Cast) -> None:
    item = make_item(people.project)
    assignment.reserve_slots(people.lead, [item], [people.annotator], now=NOW)
    members.suspend(people.lead, people.annotator)
    assert Slot.objects.get().reserved_for is None


def test_a_project_never_loses_its_last_lead(people: Cast) -> None:
    with pytest.raises(Refused, match="no lead"):
        members.change_role(people.lead, people.lead, Role.ANNOTATOR)
    with pytest.raises(Refused, match="cannot suspend yourself"):
        members.suspend(people.lead, people.lead)
    people.lead.refresh_from_db()
    assert (people.lead.role, people.lead.active) == ("lead", True)
    assert not members.list_changes(people.project).exists()


def test_a_lead_who_cannot_sign_in_does_not_count(people: Cast) -> None:
    other = make_member(people.project, role=Role.LEAD, alias="other")
    Membership.objects.filter(pk=other.pk).update(account=None)
    with pytest.raises(Refused, match="no lead"):
        members.change_role(people.lead, people.lead, Role.ANNOTATOR)


def test_one_of_two_leads_steps_down_and_sees_the_project(people: Cast) -> None:
    make_member(people.project, role=Role.LEAD, alias="other")
    change = {"member": "lead", "action": "role", "role": "annotator"}
    answer = browser_of(people.lead).post(page(people), change)
    assert answer.headers["Location"] == reverse("project", args=[people.project.slug])


def test_handing_over_changes_both_or_neither(people: Cast) -> None:
    Membership.objects.filter(pk=people.researcher.pk).update(active=False)
    with pytest.raises(Refused, match="cannot sign in"):
        members.hand_over(people.lead, people.researcher, Role.ANNOTATOR)
    people.lead.refresh_from_db()
    assert people.lead.role == "lead"
    members.hand_over(people.lead, people.annotator, Role.RESEARCHER)
    roles = dict(Membership.objects.in_project(people.project).values_list("alias", "role"))
    assert (roles["annotator"], roles["lead"]) == ("lead", "researcher")
    assert members.list_changes(people.project).count() == 2


def test_the_page_says_why_something_is_refused(people: Cast) -> None:
    client = browser_of(people.lead)
    for said in (
        {"member": "lead", "action": "role", "role": "annotator"},
        {"member": "annotator", "action": "role", "role": "king"},
        {"member": "nobody\0", "action": "suspend"},
    ):
        answer = client.post(page(people), said)
        assert answer.status_code == 422
        assert b'role="alert"' in answer.content


def test_a_site_admin_without_a_place_mends_a_project(people: Cast) -> None:
    client = Client()
    client.force_login(people.admin)
    said = {"member": "annotator", "action": "role", "role": "lead"}
    assert client.post(page(people), said).headers["Location"] == page(people)
    assert last(people).member.account == people.admin


def test_the_administration_adds_people_and_leaves_roles_to_the_page(people: Cast) -> None:
    client = Client()
    client.force_login(people.admin)
    said = {"project": people.project.pk, "alias": "new", "role": "lead", "active": "on"}
    client.post(reverse("admin:annotation_membership_add"), said)
    assert (last(people).member, last(people).subject) == (None, "new")
    assert last(people).data == {"old": {}, "new": {"role": "lead", "active": True}}
    said = {"alias": "known", "role": "researcher", "account": people.annotator.account_id}
    client.post(reverse("admin:annotation_membership_change", args=[people.annotator.pk]), said)
    people.annotator.refresh_from_db()
    assert (people.annotator.alias, people.annotator.role) == ("known", "annotator")
    assert last(people).data == {"old": {"alias": "annotator"}, "new": {"alias": "known"}}
    said["alias"] = people.lead.alias
    change = reverse("admin:annotation_membership_change", args=[people.annotator.pk])
    refused = client.post(change, said).content.decode()
    assert "Another member of the project has this alias." in refused
    assert people.annotator.active
    assert '<p class="hint">admin, ' in client.get(page(people)).content.decode()


def test_the_administration_of_a_project_adds_people_too(people: Cast) -> None:
    client = Client()
    client.force_login(people.admin)
    place = reverse("admin:annotation_project_change", args=[people.project.pk])
    form = client.get(place).context["adminform"].form
    said = {name: form.initial.get(name) or "" for name in form.fields}
    formset = {"members-TOTAL_FORMS": 1, "members-INITIAL_FORMS": 0}
    row = {"members-0-alias": "new", "members-0-role": "annotator", "members-0-active": "on"}
    answer = client.post(place, said | formset | row | {"archived_at_0": "", "archived_at_1": ""})
    assert answer.status_code == 302
    assert (last(people).subject, last(people).data["new"]["role"]) == ("new", "annotator")


def test_a_lead_of_another_project_changes_nothing_here(people: Cast) -> None:
    other = make_member(make_project(), role=Role.LEAD, alias="elsewhere")
    said = {"member": "annotator", "action": "suspend"}
    assert browser_of(other).post(page(people), said).status_code == 404
    people.annotator.refresh_from_db()
    assert people.annotator.can("enter")
    assert access.ensure_membership(people.lead) == people.lead


@pytest.mark.parametrize("suspended", [True, False])
def test_nobody_comes_back_as_a_lead_by_a_link_of_their_own(people: Cast, suspended: bool) -> None:
    other = make_member(people.project, role=Role.LEAD)
    later = datetime.now(UTC)
    asked = [
        invitations.InvitationRequest("back", Role.LEAD),
        invitations.InvitationRequest("friend", Role.ANNOTATOR),
    ]
    back, friend = (invitations.create_invitation(other, one, now=later)[1] for one in asked)
    if suspended:
        members.suspend(people.lead, other)
    else:
        members.change_role(people.lead, other, Role.ANNOTATOR)
    assert invitations.find_invitation(back, now=later) is None
    assert (invitations.find_invitation(friend, now=later) is None) is suspended
    taken_back = {
        event.subject
        for event in members.list_changes(people.project)
        if event.new.get("invitation") == "taken back"
    }
    assert taken_back == ({"back", "friend"} if suspended else {"back"})


def test_nobody_bars_a_site_admin_by_going_by_their_name(people: Cast) -> None:
    for name in ("admin-{}", "admin-{}-2"):
        make_member(people.project, alias=name.format(people.admin.pk))
    client = Client()
    client.force_login(people.admin)
    change = {"member": "annotator", "action": "suspend"}
    assert client.post(page(people), change).status_code == 302
    assert last(people).member.alias == f"admin-{people.admin.pk}-3"


def link_for(people: Cast, member: Membership, by: Membership | None = None) -> Any:
    return browser_of(by or people.lead).post(page(people), {"link": member.alias})


def test_a_lead_hands_over_a_link_that_sets_a_new_password_once(people: Cast) -> None:
    account = _without_mail(people.annotator)
    answer = link_for(people, people.annotator)
    link = re.search(r"http://testserver(/sign-in-links/[^<]+)", answer.content.decode())
    assert link
    assert answer.headers["Cache-Control"].startswith("max-age=0")
    assert Event.objects.get(kind="sign-in link").subject == "annotator"
    assert "Set a new password" in Client().get(link[1]).content.decode()
    weak = {"new_password1": "12345678", "new_password2": "12345678"}
    assert Client().post(link[1], weak).status_code == 422
    new = "another-long-password"
    answer = Client().post(link[1], {"new_password1": new, "new_password2": new})
    assert answer.status_code == 302
    account.refresh_from_db()
    assert account.check_password(new)
    assert Client().get(link[1]).status_code == 404


def _without_mail(member: Membership) -> Account:
    account = member.account
    assert account
    account.email = ""
    account.save()
    return account


@pytest.mark.parametrize(
    "change",
    [
        lambda people: members.suspend(people.lead, people.annotator),
        lambda people: members.change_role(people.lead, people.annotator, Role.LEAD),
        lambda people: make_member(make_project(), account=people.annotator.account),
        lambda people: Membership.objects.filter(pk=people.lead.pk).update(role="annotator"),
        lambda people: Membership.objects.filter(pk=people.lead.pk).update(active=False),
        lambda people: Account.objects.filter(pk=people.annotator.account_id).update(is_staff=True),
        lambda people: Account.objects.filter(pk=people.annotator.account_id).update(
            email="ann@blindspot.example"
        ),
        lambda people: Account.objects.filter(pk=people.annotator.account_id).update(
            last_login=timezone.now()
        ),
    ],
)
def test_a_link_ends_once_the_lead_could_not_create_it_any_more(people: Cast, change: Any) -> None:
    _without_mail(people.annotator)
    make_member(people.project, role="lead", alias="other-lead")
    link = reverse("sign-in-link", args=[sign_in_links.create_link(people.lead, people.annotator)])
    assert Client().get(link).status_code == 200
    change(people)
    assert Client().get(link).status_code == 404


def test_a_link_is_old_after_a_day_and_cannot_be_forged(people: Cast, monkeypatch: Any) -> None:
    _without_mail(people.annotator)
    key = sign_in_links.create_link(people.lead, people.annotator)
    assert sign_in_links.find_link(key)
    assert sign_in_links.find_link(key[:-1] + ("A" if key[-1] != "A" else "B")) is None
    monkeypatch.setattr(sign_in_links, "VALID_FOR", timedelta(seconds=-1))
    assert sign_in_links.find_link(key) is None


@pytest.mark.parametrize(
    "case", ["mail", "service", "lead", "leads", "staff", "elsewhere", "suspended", "closed"]
)
def test_no_link_for_who_could_be_acted_for(people: Cast, case: str, settings: Any) -> None:
    settings.EMAIL_HOST = "mail.blindspot.example"
    member, account = people.annotator, people.annotator.account
    assert account
    account.email = "ann@blindspot.example" if case == "mail" else ""
    account.is_staff, account.is_active = case == "staff", case != "closed"
    account.save()
    if case == "elsewhere":
        make_member(make_project(), account=account, alias="there")
    if case == "service":
        SocialAccount.objects.create(user=account, provider="lab", uid="1")
    if case == "leads":
        # Of a project that the lead leads too.
        other = make_member(make_project(), role="lead", account=account, alias="there")
        make_member(other.project, role="lead", account=people.lead.account, alias="lead")
    if case == "lead":
        members.change_role(people.lead, member, Role.LEAD)
    if case == "suspended":
        members.suspend(people.lead, member)
    answer = link_for(people, member)
    assert answer.status_code == 422
    assert "/sign-in-links/" not in answer.content.decode()
    assert not Event.objects.filter(kind="sign-in link").exists()


def test_where_no_mail_can_be_sent_an_address_is_no_hindrance(people: Cast, settings: Any) -> None:
    assert people.annotator.account
    people.annotator.account.email = "ann@blindspot.example"
    people.annotator.account.save()
    page = reverse("members", args=[people.project.slug])
    button = f'name="link" value="{people.annotator.alias}"'
    settings.EMAIL_HOST = "mail.blindspot.example"
    assert button not in browser_of(people.lead).get(page).text
    settings.EMAIL_HOST = ""
    assert button in browser_of(people.lead).get(page).text
    assert "/sign-in-links/" in link_for(people, people.annotator).text


def test_people_are_put_into_groups_and_items_reserved_for_a_group(people: Cast) -> None:
    lead, other = browser_of(people.lead), make_member(people.project, alias="Bob")
    for alias in (people.annotator.alias, other.alias):
        change = {"member": alias, "action": "role", "role": "annotator", "group": " Course  A "}
        assert lead.post(page(people), change).status_code == 302
    assert members.list_groups(people.project) == ["Course A"]
    assert last(people).data["new"] == {"group": "Course A"}
    long = {"member": "Bob", "action": "role", "role": "annotator", "group": "x" * 41}
    assert lead.post(page(people), long).status_code == 422
    for _ in range(4):
        make_item(people.project)
    assign = reverse("assign", args=[people.project.slug])
    lead.post(assign, {"action": "share", "group": "Course A"})
    kept = Slot.objects.filter(reserved_for__isnull=False).values_list(
        "reserved_for__alias", flat=True
    )
    assert sorted(kept) == ["Bob", "Bob", people.annotator.alias, people.annotator.alias]


def test_who_is_invited_with_others_is_in_their_group(people: Cast) -> None:
    wanted = invitations.read_people("Ann\nBob", role="annotator", days=7, group="Course B")
    for made, _ in invitations.create_invitations(people.lead, wanted, now=timezone.now()):
        invitations.accept(made, make_account(), now=timezone.now())
    assert members.list_groups(people.project) == ["Course B"]
