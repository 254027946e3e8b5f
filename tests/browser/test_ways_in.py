"""The ways in, by a browser: another service, the second step, sessions; axe finds nothing."""

import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.core.cache import cache
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page

from annotation.models import Membership, Role
from annotation.projects import invitations
from config import mfa
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import PASSWORD, make_member, make_project
from tests.config.scripted_identity import Service, offered

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LOGIN = "/accounts/login/"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    with offered(monkeypatch) as service:
        yield service


@pytest.fixture
def member() -> Membership:
    return make_member(make_project(), role=Role.LEAD, alias="lead")


def test_the_invited_come_in_by_the_service_without_a_password(
    open_page: OpenPage, service: Service, member: Membership
) -> None:
    key = invitations.create_invitation(
        member, invitations.InvitationRequest("grace", "annotator"), now=timezone.now()
    )[1]
    service.person = {"sub": "g", "preferred_username": "gh"}
    page = open_page(None, reverse("invitation", args=[key]))
    page.click("text=Join with Lab account")
    page.wait_for_selector("text=Welcome. You are grace")
    page.click("summary")
    page.click("text=Sign out")
    page.click("text=Sign in with Lab account")
    page.wait_for_selector("summary:has-text('gh')")
    assert Membership.objects.in_project(member.project).named("grace")


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_pages_of_the_other_service(
    open_page: OpenPage, service: Service, member: Membership, width: int, scheme: str
) -> None:
    page = open_page(None, LOGIN, **look(width, scheme))
    checked(page)
    for trouble, words in troubles(service):
        page.goto(LOGIN)
        trouble()
        page.click("text=Sign in with Lab account")
        page.wait_for_selector(f"text={words}")
        checked(page)
    page.goto("/accounts/openid/back/")
    checked(page)
    checked(open_page(member.account, "/accounts/openid/", **look(width, scheme)))


def troubles(service: Service) -> list[tuple[object, str]]:
    return [
        (lambda: None, "You have no account or invitation here"),
        (lambda: setattr(service, "refuses", "access_denied"), "You are not signed in"),
        (lambda: setattr(service, "itself", {"issuer": "another"}), "does not answer"),
    ]


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_pages_of_the_second_step(
    open_page: OpenPage, member: Membership, width: int, scheme: str
) -> None:
    """Some seconds: axe looks at each page in two colour schemes."""
    cache.clear()
    page = signed_in(open_page, member, **look(width, scheme))
    page.goto("/accounts/two-step/")
    checked(page)
    page.click("text=Set it up")
    page.fill("[name=password]", PASSWORD)
    checked(page)
    page.click("main button")
    page.fill("[name=code]", "000000")
    page.click("main button[data-kind=primary]")
    page.wait_for_selector("text=This code is wrong")
    checked(page)
    TOTP.activate(member.account, generate_totp_secret())
    RecoveryCodes.activate(member.account)
    for place in ("", "codes/", "codes/new/", "app/off/"):
        page.goto(f"/accounts/two-step/{place}")
        assert page.url.endswith(f"/two-step/{place}")
        checked(page)
    cache.clear()
    asked = signed_in(open_page, member, **look(width, scheme))
    asked.wait_for_selector("text=The second step")
    checked(asked)


@pytest.mark.parametrize("width, scheme", LOOKS)
@pytest.mark.parametrize("path", ["/my-data/", "/sessions/", "/accounts/password/set/"])
def test_the_pages_of_ones_own(
    open_page: OpenPage,
    member: Membership,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    width: int,
    scheme: str,
) -> None:
    if path.endswith("set/"):
        monkeypatch.setattr(mfa, "REAUTHENTICATION_TIMEOUT", math.inf)
        member.account.set_unusable_password()
        member.account.save()
    page = open_page(member.account, path, **look(width, scheme))
    assert urlsplit(page.url).path == path
    checked(page)


@pytest.mark.parametrize("width, height", [(1280, 720), (390, 844)])
def test_one_browser_ends_the_session_of_another(
    open_page: OpenPage, member: Membership, width: int, height: int
) -> None:
    cache.clear()
    size = {"viewport": {"width": width, "height": height}}
    here, there = (signed_in(open_page, member, **size) for _ in range(2))
    here.goto("/sessions/")
    assert here.locator("tbody tr").count() == 2
    assert here.locator("tbody .chip").all_inner_texts() == ["this one"]
    checked(here)
    here.click("text=End all other sessions")
    here.wait_for_selector("text=1 session is ended")
    assert here.locator("tbody tr").count() == 1
    there.goto("/sessions/")
    assert there.url.endswith(f"{LOGIN}?next=/sessions/")


def signed_in(open_page: OpenPage, member: Membership, **options: Any) -> Page:
    page = open_page(None, LOGIN, **options)
    page.fill("[name=login]", member.account.username)
    page.fill("[name=password]", PASSWORD)
    page.click("main form button")
    page.wait_for_url(lambda url: not url.endswith(LOGIN))
    return page
