"""Leads who act at the same moment, and links that several open at once, as real threads."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.errors import Refused
from annotation.labelling import bulk_changes
from annotation.models import (
    Account,
    BulkChange,
    Event,
    Invitation,
    Item,
    Membership,
    Project,
    Role,
)
from annotation.projects import invitations, members, sign_in_links
from annotation.projects.creation import load_task_type_version
from annotation.reports import personal_data
from tests.annotation.test_queue_threads import at_once
from tests.builders import browser_of, make_account, make_item, make_member, make_project

pytestmark = pytest.mark.django_db(transaction=True)


def succeeds(work: Callable[[], object]) -> bool:
    try:
        work()
    except (Refused, PermissionDenied):
        return False
    return True


def test_of_leads_who_suspend_each_other_at_once_those_who_were_first_are_left() -> None:
    project = make_project()
    leads = [make_member(project, role=Role.LEAD) for _ in range(4)]
    pairs = zip(leads, leads[1:] + leads[:1], strict=True)
    works = [lambda by=by, who=who: succeeds(lambda: members.suspend(by, who)) for by, who in pairs]
    done = sum(at_once(*works))
    assert 0 < done < 4
    assert Membership.objects.in_project(project).who_manage().count() == 4 - done


def test_of_leads_who_invite_the_same_names_at_once_one_makes_the_links() -> None:
    project = make_project()
    browsers = [browser_of(make_member(project, role=Role.LEAD)) for _ in range(4)]
    names = [("ada", "ben", "cem"), ("cem", "ben", "ada")] * 2
    works = [
        lambda one=one, some=some: one.post(
            reverse("members-invite", args=[project.slug]),
            {"people": "\n".join(some), "role": Role.ANNOTATOR, "days": 7},
        )
        for one, some in zip(browsers, names, strict=True)
    ]
    assert sorted(answer.status_code for answer in at_once(*works)) == [200, 422, 422, 422]
    assert Invitation.objects.in_project(project).count() == 3


def test_a_project_that_is_created_twice_at_once_is_there_once() -> None:
    account = make_account()
    load_task_type_version("rating")
    Account.objects.filter(pk=account.pk).update(creates_projects=True)
    said = {"name": "Reviews", "task_type": "rating", "categories": "fbi"}
    browsers = [browser_of(account) for _ in range(4)]
    works = [lambda one=one: one.post(reverse("new-project"), said) for one in browsers]
    assert sorted(answer.status_code for answer in at_once(*works)) == [302, 422, 422, 422]
    assert Project.objects.get().slug == "reviews"


def test_who_is_removed_adds_no_lead_by_a_request_that_was_under_way() -> None:
    """What the removed lead asks for is let in before and done after the removal."""
    lead = make_member(make_project(), role=Role.LEAD)
    gone, friend = (make_member(lead.project, role=role) for role in (Role.LEAD, Role.ANNOTATOR))
    wanted = invitations.InvitationRequest("friend", Role.LEAD)
    members.suspend(lead, Membership.objects.get(pk=gone.pk))
    assert gone.is_lead
    for work in (
        lambda: members.restore(gone, gone),
        lambda: members.change_role(gone, friend, Role.LEAD),
        lambda: members.hand_over(gone, friend, Role.ANNOTATOR),
        lambda: invitations.create_invitation(gone, wanted, now=timezone.now()),
    ):
        with pytest.raises(PermissionDenied):
            work()
    assert [*Membership.objects.in_project(lead.project).who_manage()] == [lead]
    assert not Invitation.objects.exists()


def test_of_leads_who_undo_a_bulk_change_at_once_one_is_on_record() -> None:
    lead = make_member(make_project(), role=Role.LEAD)
    for key in "abcd":
        make_item(lead.project, key)
    items = Item.objects.in_project(lead.project)
    made = bulk_changes.change_items(lead, items, "exclude", "", now=timezone.now()).change

    def undo() -> bool:
        change = BulkChange.objects.get(pk=made.pk)
        return succeeds(lambda: bulk_changes.undo_change(lead, change, now=timezone.now()))

    assert sum(at_once(*[undo] * 4)) == 1
    assert Item.objects.filter(deleted_at=None).count() == 4
    assert Event.objects.filter(kind="bulk change undone").count() == 1


def test_an_invitation_made_while_its_lead_is_removed_lets_nobody_in() -> None:
    for _ in range(10):
        lead = make_member(make_project(), role=Role.LEAD)
        gone = make_member(lead.project, role=Role.LEAD)
        asked = [invitations.InvitationRequest(f"friend {n}", Role.LEAD) for n in range(4)]

        def invite(one: invitations.InvitationRequest, by: Membership = gone) -> object:
            with suppress(PermissionDenied):
                return invitations.create_invitation(by, one, now=timezone.now())
            return None

        def remove(lead: Membership = lead, gone: Membership = gone) -> object:
            return members.suspend(lead, Membership.objects.get(pk=gone.pk))

        at_once(*(lambda one=one: invite(one) for one in asked), remove)
        assert not Invitation.objects.in_project(lead.project).waiting().exists()


def test_of_people_who_open_one_link_at_once_one_comes_in() -> None:
    lead = make_member(make_project(), role=Role.LEAD)
    key = invitations.create_invitation(
        lead, invitations.InvitationRequest("gh", "annotator"), now=timezone.now()
    )[1]
    found = invitations.find_invitation(key, now=timezone.now())
    assert found
    accounts = [make_account() for _ in range(6)]
    works = [
        lambda account=account: succeeds(
            lambda: invitations.accept(found, account, now=timezone.now())
        )
        for account in accounts
    ]
    assert sum(at_once(*works)) == 1
    assert Membership.objects.in_project(lead.project).count() == 2


def test_of_invitations_that_one_person_accepts_at_once_one_is_used() -> None:
    lead, account = make_member(make_project(), role=Role.LEAD), make_account()
    found = [
        invitations.create_invitation(
            lead, invitations.InvitationRequest(alias, "annotator"), now=timezone.now()
        )[0]
        for alias in ("one", "two", "three", "four")
    ]
    works = [
        lambda one=one: succeeds(lambda: invitations.accept(one, account, now=timezone.now()))
        for one in found
    ]
    assert sum(at_once(*works)) == 1
    assert Invitation.objects.waiting().count() == 3


def test_of_leads_whose_accounts_are_anonymised_at_once_one_is_left() -> None:
    project = make_project()
    leads = [make_member(project, role=Role.LEAD) for _ in range(4)]
    works = [
        lambda one=one: succeeds(
            lambda: personal_data.anonymise(one.account, None, now=timezone.now())
        )
        for one in leads
    ]
    assert sum(at_once(*works)) == 3
    assert Membership.objects.in_project(project).who_manage().count() == 1


def test_of_requests_that_use_one_sign_in_link_at_once_one_sets_the_password() -> None:
    lead = make_member(make_project(), role="lead")
    member = make_member(lead.project, alias="gh")
    address = reverse("sign-in-link", args=[sign_in_links.create_link(lead, member)])

    def use(password: str) -> int:
        sent = {"new_password1": password, "new_password2": password}
        return Client().post(address, sent).status_code

    passwords = [f"another-long-password-{number}" for number in range(4)]
    got = at_once(*(lambda one=one: use(one) for one in passwords))
    assert sorted(got) == [302, 404, 404, 404]
    account = Account.objects.get(memberships=member)
    assert account.check_password(passwords[got.index(302)])
