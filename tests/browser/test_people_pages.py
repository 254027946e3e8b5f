"""A lead invites somebody, who makes an account and is in; axe finds nothing on the way."""

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from annotation.models import Event, Membership, Role
from annotation.projects import invitations, members
from tests.browser.conftest import OpenPage
from tests.browser.screen import label_screen
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_account, make_item, make_member, make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lead() -> Membership:
    return make_member(make_project(), role=Role.LEAD, alias="lead")


def test_somebody_comes_in_by_a_link_without_reading_a_document(
    open_page: OpenPage, lead: Membership
) -> None:
    page = open_page(lead.account, reverse("project", args=[lead.project.slug]))
    page.click("text=Members")
    page.click("text=Invite somebody")
    page.fill("[name=alias]", "grace")
    page.click("text=Create link")
    link = page.inner_text(".secret")
    other = open_page(None, link)
    other.fill("[name=username]", "gh")
    other.fill("[name=password1]", "quite-another-word")
    other.fill("[name=password2]", "quite-another-word")
    other.click("text=Create account and join")
    other.wait_for_selector("text=You are grace in this project")
    assert Membership.objects.in_project(lead.project).named("grace")


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_pages_of_people(
    open_page: OpenPage, lead: Membership, width: int, scheme: str
) -> None:
    wanted = invitations.InvitationRequest(
        "a-name-that-is-rather-long-for-one", "annotator", "gh@lab.example"
    )
    key = invitations.create_invitation(lead, wanted, now=timezone.now())[1]
    make_member(lead.project, alias="ada")
    members.suspend(lead, make_member(lead.project, alias="ben"))
    page = open_page(
        lead.account, reverse("members", args=[lead.project.slug]), **look(width, scheme)
    )
    checked(page)
    page.goto(reverse("members-invite", args=[lead.project.slug]))
    page.click("text=Create link")
    checked(page)
    page.fill("[name=alias]", "grace")
    page.click("text=Create link")
    page.wait_for_selector(".secret")
    checked(page)
    page.goto(reverse("invitation", args=[key]))
    checked(page)


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_pages_of_the_invited(
    open_page: OpenPage, lead: Membership, width: int, scheme: str
) -> None:
    key = invitations.create_invitation(
        lead, invitations.InvitationRequest("gh", "annotator"), now=timezone.now()
    )[1]
    page = open_page(None, reverse("invitation", args=[key]), **look(width, scheme))
    checked(page)
    page.click("text=Create account and join")
    checked(page)
    page.goto(reverse("invitation", args=["nothing"]))
    checked(page)
    signed_in = open_page(make_account(), reverse("invitation", args=[key]), **look(width, scheme))
    checked(signed_in)


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_audit(open_page: OpenPage, lead: Membership, width: int, scheme: str) -> None:
    members.suspend(lead, make_member(lead.project, alias="a-name-that-is-rather-long-for-one"))
    place = {"project_id": lead.project.pk, "member_id": lead.pk}
    Event.record("flag", "item" * 40, **place, note="a word " * 90 + "x" * 400)
    page = open_page(
        lead.account, reverse("audit", args=[lead.project.slug]), **look(width, scheme)
    )
    checked(page)
    page.fill("[name=subject]", "nothing of this name")
    page.click("text=Show")
    page.wait_for_selector("text=No entries match")
    checked(page)


def test_who_is_suspended_at_work_is_told_so_there_and_then(
    open_page: OpenPage, lead: Membership
) -> None:
    make_item(lead.project, "item-01")
    member = make_member(lead.project)
    page = label_screen(open_page, member)
    members.suspend(lead, member)
    page.keyboard.press("s")
    expect(page.locator("#trouble")).to_contain_text("Ask a lead of the project")
    page.keyboard.press("1")
    expect(page.locator("#trouble, #outbox").first).to_contain_text("You are suspended")
    page.goto(page.url)
    expect(page.locator("main")).to_contain_text("You are suspended")
    checked(page)


def test_the_way_back_chooses_nobody_else_for_items(open_page: OpenPage, lead: Membership) -> None:
    """Browsers tick the boxes of an address again by their places, whoever stands there by now."""
    ann, _, _ = (make_member(lead.project, alias=name) for name in ("Ann", "Bob", "Cleo"))
    page = open_page(lead.account, reverse("assign", args=[lead.project.slug]))
    page.get_by_label("Bob").check()
    page.goto(reverse("members", args=[lead.project.slug]))
    members.suspend(lead, ann)
    page.go_back()
    expect(page.get_by_label("Ann")).to_have_count(0)
    expect(page.get_by_label("Cleo")).to_be_visible()
    expect(page.locator("[name=people]:checked")).to_have_count(0)
